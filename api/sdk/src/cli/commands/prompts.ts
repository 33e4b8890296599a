// Lists, reads and writes prompts of the registry.
import { readFile } from 'node:fs/promises';
import type { MillraceClient } from '../../client.ts';
import type { Prompt, PromptMessage } from '../../prompts.ts';
import { type Command, EXIT, UsageError } from '../command.ts';
import { localTime } from '../output.ts';
import type { Column } from '../table.ts';

/** A prompt as lists and reads return it. */
type Listed = Omit<Prompt, 'versions'>;

const COLUMNS: readonly Column<Listed>[] = [
  { title: 'NAME', value: ({ name }) => name, isWhole: true },
  { title: 'VERSION', value: ({ version }) => version },
  { title: 'TYPE', value: ({ type }) => type, isOptional: true },
  { title: 'MODEL', value: ({ model }) => model },
  { title: 'LABELS', value: ({ labels }) => labels.join(', ') },
  { title: 'CREATED', value: ({ created_at }) => localTime(created_at), isWhole: true, isOptional: true },
];

const pathOf = (name: string): string => `/v1/prompts/${encodeURIComponent(name)}`;

export const promptsList: Command = {
  name: 'prompts list',
  usage: '',
  about: 'Lists prompts with their newest versions',
  args: [0, 0],
  options: {
    name: { type: 'string', value: 'TEXT', about: 'Prompts whose name contains this' },
    limit: { type: 'string', short: 'n', value: 'N', about: 'Number of prompts, at most 200. Default: 50' },
  },
  run: async ({ client, given, out }) => {
    const { data } = await client.get<{ data: Listed[] }>('/v1/prompts', {
      name: given.text('name'),
      limit: given.whole('limit', { min: 1, max: 200, fallback: 50 }),
    });
    await out.records(data, COLUMNS, 'There are no prompts.');
    return EXIT.ok;
  },
};

export const promptsGet: Command = {
  name: 'prompts get',
  usage: '<name>',
  about: 'Prints the newest version of a prompt, or the one with a version or label',
  args: [1, 1],
  options: {
    version: { type: 'string', value: 'VERSION', about: 'Version to print' },
    label: { type: 'string', value: 'LABEL', about: 'Label of the version to print' },
    template: { type: 'boolean', about: 'Prints the template alone, as prompts push takes it' },
  },
  run: async ({ client, args: [name = ''], given, out }) => {
    const { data: prompt } = await client.get<{ data: Listed }>(pathOf(name), {
      version: given.text('version'),
      label: given.text('label'),
    });
    const template = typeof prompt.template === 'string' ? prompt.template : JSON.stringify(prompt.template, null, 2);
    if (given.flag('template')) await out.line(template);
    else {
      if (out.isTable) await out.records([prompt], COLUMNS);
      await out.record(prompt, () => `\n${shownTemplate(prompt.template)}`);
    }
    return EXIT.ok;
  },
};

/** Returns a template without characters that would steer a terminal. */
const shownTemplate = (template: string | PromptMessage[]): string =>
  (typeof template === 'string'
    ? template
    : template.map(({ role, content }) => `${role}: ${content}`).join('\n\n')
  ).replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, ' ');

export const promptsPush: Command = {
  name: 'prompts push',
  usage: '<name>',
  about: 'Creates a version of a prompt from a file, unless the newest version is the same',
  args: [1, 1],
  options: {
    file: {
      type: 'string',
      short: 'f',
      value: 'FILE',
      about: 'Template: text, or JSON with a list of {role, content}; - is standard input',
    },
    version: { type: 'string', value: 'VERSION', about: 'Default: the next whole number' },
    model: { type: 'string', value: 'MODEL', about: 'Model that the prompt is meant for' },
    label: {
      type: 'string',
      multiple: true,
      value: 'LABEL',
      about: 'Label that names the version from now on; may be repeated',
    },
  },
  run: async ({ client, args: [name = ''], given, out }) => {
    const template = await templateOf(given.required('file'));
    const [version, model] = [given.text('version'), given.text('model')];
    const newest = version === undefined ? await newestOf(client, name) : null;
    const isSame =
      newest !== null &&
      JSON.stringify(newest.template) === JSON.stringify(template) &&
      (model === undefined || newest.model === model);
    const prompt = isSame
      ? newest
      : (
          await client.request<{ data: Listed }>('POST', '/v1/prompts', {
            body: {
              name,
              template,
              ...(version === undefined ? {} : { version }),
              ...(model === undefined ? {} : { model }),
            },
          })
        ).data;
    for (const label of given.list('label')) await moveLabel(client, name, label, prompt.version);
    if (isSame) out.note(`Version ${prompt.version} of ${name} has this template already.`);
    const { data } = await client.get<{ data: Listed }>(pathOf(name), { version: prompt.version });
    await out.records([data], COLUMNS);
    return EXIT.ok;
  },
};

async function newestOf(client: MillraceClient, name: string): Promise<Listed | null> {
  const { data } = await client.get<{ data: Listed[] }>('/v1/prompts', { name, limit: 200 });
  const found = data.find((prompt) => prompt.name === name);
  return found ?? null;
}

/** @throws UsageError */
async function templateOf(file: string): Promise<string | PromptMessage[]> {
  const text = await readFile(file === '-' ? '/dev/stdin' : file, 'utf8').catch((cause: unknown) => {
    throw new UsageError(`--file: ${cause instanceof Error ? cause.message : file}`);
  });
  // The line break that editors put at the end of a file is no part of the template.
  if (!file.endsWith('.json') && !/^\s*\[\s*\{/.test(text)) return text.replace(/\r?\n$/, '');
  try {
    return JSON.parse(text) as PromptMessage[];
  } catch (cause) {
    throw new UsageError(`--file: ${file} is not JSON: ${cause instanceof Error ? cause.message : ''}`);
  }
}

const moveLabel = (client: MillraceClient, name: string, label: string, version: string): Promise<unknown> =>
  client.request('PUT', `${pathOf(name)}/labels/${encodeURIComponent(label)}`, { body: { version } });

export const promptsLabel: Command = {
  name: 'prompts label',
  usage: '<name> <label> <version>',
  about: 'Moves a label to a version',
  args: [3, 3],
  options: {},
  run: async ({ client, args: [name = '', label = '', version = ''], out }) => {
    await moveLabel(client, name, label, version);
    const { data } = await client.get<{ data: Listed }>(pathOf(name), { label });
    await out.records([data], COLUMNS);
    return EXIT.ok;
  },
};
