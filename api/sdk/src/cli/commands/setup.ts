// Prints or writes the settings with which a coding agent reports to the service and asks its MCP
// server. Files that other people may see get no key: they name the variable that holds it.
import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import path from 'node:path';
import { type Command, EXIT, UsageError } from '../command.ts';

const AGENTS = ['claude-code', 'codex', 'cursor'] as const;
type Agent = (typeof AGENTS)[number];

/** A file of settings, and what it must hold. */
interface Settings {
  file: string;
  /** What the settings are for. */
  about: string;
  /** True for a file that holds the key itself. */
  hasKey: boolean;
  content: { json: Json } | { toml: readonly TomlTable[] };
}
interface Json {
  [key: string]: Json | string | boolean;
}
interface TomlTable {
  table: string;
  lines: readonly string[];
}

/** Stands for the key where it is printed. */
const KEY_SHOWN = '<MILLRACE_API_KEY>';

const claudeCode = (url: string, key: string): Settings[] => [
  {
    file: '.claude/settings.local.json',
    about: 'Claude Code reports its model calls and tools',
    hasKey: true,
    content: {
      json: {
        env: {
          CLAUDE_CODE_ENABLE_TELEMETRY: '1',
          OTEL_LOGS_EXPORTER: 'otlp',
          OTEL_METRICS_EXPORTER: 'none',
          OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
          OTEL_EXPORTER_OTLP_ENDPOINT: `${url}/v1/otlp`,
          OTEL_EXPORTER_OTLP_HEADERS: `authorization=Bearer%20${key}`,
          OTEL_LOG_USER_PROMPTS: '1',
          OTEL_LOG_TOOL_DETAILS: '1',
        },
      },
    },
  },
  {
    file: '.mcp.json',
    about: 'Claude Code asks the MCP server, with the key in the variable MILLRACE_API_KEY',
    hasKey: false,
    content: {
      json: {
        mcpServers: {
          millrace: { type: 'http', url: `${url}/mcp`, headers: { Authorization: 'Bearer ${MILLRACE_API_KEY}' } },
        },
      },
    },
  },
];

const codex = (url: string, key: string): Settings[] => [
  {
    file: path.join(process.env['CODEX_HOME'] ?? path.join(homedir(), '.codex'), 'config.toml'),
    about: 'Codex reports its model calls and tools, and asks the MCP server with the key in MILLRACE_API_KEY',
    hasKey: true,
    content: {
      toml: [
        {
          table: 'otel',
          lines: [
            'log_user_prompt = true',
            `exporter = { otlp-http = { endpoint = ${JSON.stringify(`${url}/v1/logs`)}, protocol = "binary", headers = { "authorization" = ${JSON.stringify(`Bearer ${key}`)} } } }`,
          ],
        },
        {
          table: 'mcp_servers.millrace',
          lines: [`url = ${JSON.stringify(`${url}/mcp`)}`, 'bearer_token_env_var = "MILLRACE_API_KEY"'],
        },
      ],
    },
  },
];

const cursor = (url: string): Settings[] => [
  {
    file: '.cursor/mcp.json',
    about: 'Cursor asks the MCP server, with the key in the variable MILLRACE_API_KEY',
    hasKey: false,
    content: {
      json: {
        mcpServers: { millrace: { url: `${url}/mcp`, headers: { Authorization: 'Bearer ${env:MILLRACE_API_KEY}' } } },
      },
    },
  },
];

const SETTINGS: Readonly<Record<Agent, (url: string, key: string) => Settings[]>> = {
  'claude-code': claudeCode,
  codex,
  cursor,
};

export const setup: Command = {
  name: 'setup',
  usage: `<${AGENTS.join('|')}>`,
  about: 'Prints the settings of a coding agent for telemetry and the MCP server, or writes them',
  args: [1, 1],
  options: {
    write: { type: 'boolean', about: 'Writes the files; what they hold besides stays' },
  },
  run: async ({ client, args: [name], given, out }) => {
    const agent = AGENTS.find((known) => known === name);
    if (agent === undefined) throw new UsageError(`setup takes one of ${AGENTS.join(', ')}`);
    const key = given.text('api-key') ?? process.env['MILLRACE_API_KEY'];
    const settings = SETTINGS[agent](client.url, key ?? '');
    if (!given.flag('write')) {
      for (const { file, about, content } of SETTINGS[agent](client.url, KEY_SHOWN))
        await out.record({ file, about, content: textOf(content) }, () => `# ${about}\n# ${file}\n${textOf(content)}`);
      return EXIT.ok;
    }
    if (key === undefined && settings.some(({ hasKey }) => hasKey))
      throw new UsageError('MILLRACE_API_KEY is not set; the settings need it');
    for (const one of settings) {
      await write(one);
      await out.record({ file: one.file, written: true }, () => `Wrote ${one.file}: ${one.about}.`);
    }
    return EXIT.ok;
  },
};

function textOf(content: Settings['content']): string {
  if ('json' in content) return `${JSON.stringify(content.json, null, 2)}\n`;
  return content.toml.map(({ table, lines }) => `[${table}]\n${lines.join('\n')}\n`).join('\n');
}

/** Adds settings to a file. @throws UsageError where the file cannot take them */
async function write({ file, hasKey, content }: Settings): Promise<void> {
  const before = await readFile(file, 'utf8').catch(() => '');
  const after = 'json' in content ? withJson(before, content.json, file) : withToml(before, content, file);
  await mkdir(path.dirname(path.resolve(file)), { recursive: true });
  // A reader sees the old file or the new one.
  const partial = `${file}.millrace-${process.pid}`;
  await writeFile(partial, after, { mode: hasKey ? 0o600 : 0o644 });
  if (hasKey) await chmod(partial, 0o600);
  await rename(partial, file);
}

function withJson(before: string, json: Json, file: string): string {
  let known: unknown = {};
  try {
    if (before.trim() !== '') known = JSON.parse(before) as unknown;
  } catch {
    throw new UsageError(`${file} is not JSON, so nothing was added to it`);
  }
  if (!isJson(known)) throw new UsageError(`${file} holds no JSON object, so nothing was added to it`);
  return `${JSON.stringify(merged(known, json), null, 2)}\n`;
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

function merged(before: Json, added: Json): Json {
  const after = { ...before };
  for (const [key, value] of Object.entries(added)) {
    const known = Object.hasOwn(before, key) ? before[key] : undefined;
    after[key] = isJson(value) && isJson(known) ? merged(known, value) : value;
  }
  return after;
}

function withToml(before: string, content: { toml: readonly TomlTable[] }, file: string): string {
  const held = before.split('\n').map((line) => line.trim());
  const there = content.toml.filter(({ table }) => held.includes(`[${table}]`)).map(({ table }) => table);
  if (there.length > 0)
    throw new UsageError(
      `${file} has the tables ${there.join(', ')} already, so nothing was added to it; millrace setup codex prints them`,
    );
  return `${before === '' || before.endsWith('\n') ? before : `${before}\n`}${before === '' ? '' : '\n'}${textOf(content)}`;
}
