// The screens of prompts: the list, versions and their differences, usage, the editor, and the
// playground with the model of the tests behind the gateway.
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import {
  api,
  axeViolations,
  expectNoFaults,
  openPage,
  orgPath,
  overflow,
  type PageOptions,
  settled,
} from './support/browser.ts';
import { aPrompt, QUESTIONS } from './support/prompts.ts';

const NAME = 'shop/answer';
const PATH = `~/prompts/${encodeURIComponent(NAME)}`;

beforeAll(async () => {
  await aPrompt(NAME, { org_id: inject('portal').org_id, api });
});

/** Opens a page of the prompt, and resolves when its versions are there. */
async function openPrompt(query = '', at = PATH, options: PageOptions = {}): Promise<Page> {
  const page = await openPage({ at: at + query, ...options });
  await versionsOf(page).getByRole('listitem').first().waitFor();
  return page;
}

const versionsOf = (page: Page) => page.getByRole('navigation', { name: 'Versions' });
/** Leaves one of the three inputs that the playground begins with. */
async function keepOneInput(page: Page): Promise<void> {
  for (const number of [3, 2]) await page.getByRole('button', { name: `Remove input ${number}` }).click();
}

const textOf = (page: Page): Promise<string> => page.locator('main').innerText();
const answers = (page: Page) => page.getByRole('region', { name: /^Text of/ });
/** Replaces the text of an editor by keys. */
async function type(within: Page | Locator, name: string, text: string): Promise<void> {
  const page = 'keyboard' in within ? within : within.page();
  await within.getByRole('textbox', { name }).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(text);
}

describe('the list of prompts', () => {
  it('shows the current version, the variables and the calls of 7 days, and opens by keys', async () => {
    const page = await openPage({ at: `~/prompts?name=${encodeURIComponent(NAME)}` });
    await settled(page);
    const row = page.getByRole('row', { name: new RegExp(NAME) });
    await row.getByText('customer, question').waitFor();
    await expect.poll(() => row.innerText()).toMatch(/3/);
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: NAME }).waitFor();
    expectNoFaults(page);
  });

  it('makes a prompt from a real call', async () => {
    const page = await openPage({ at: '~/prompts' });
    await page.getByRole('button', { name: 'From a real call' }).first().click();
    await page.getByRole('dialog').getByRole('button', { name: 'gpt-4o-mini' }).first().click();
    await page.getByRole('dialog', { name: 'Create prompt' }).waitFor();
    await page.getByRole('textbox', { name: 'Name' }).fill('made/from-a-call');
    await page.getByRole('button', { name: 'Create prompt' }).last().click();
    await page.getByRole('heading', { level: 1, name: 'made/from-a-call' }).waitFor();
    await settled(page);
    expect(await page.getByRole('textbox', { name: 'Message 1, user' }).inputValue()).toContain('Answer Ann');
    expectNoFaults(page);
  });
});

describe('the editor', () => {
  it('is left by Tab and by Escape, marks unknown variables, and saves by Ctrl+Enter', async () => {
    const page = await openPrompt();
    await page.keyboard.press('n');
    const dialog = page.getByRole('dialog', { name: `Save a version of ${NAME}` });
    await dialog.waitFor();
    const editor = dialog.getByRole('textbox', { name: 'Template' });
    await editor.waitFor();
    await editor.click();
    await page.keyboard.press('Tab');
    expect(
      await dialog.getByRole('textbox', { name: 'Model' }).evaluate((field) => field === document.activeElement),
    ).toBe(true);
    await editor.click();
    await page.keyboard.press('Escape');
    expect(await dialog.isVisible()).toBe(true);
    await type(dialog, 'Template', 'Answer {{customer}} briefly: {{question}} ({{mood}})');
    await page.keyboard.press('Control+Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 2, name: 'Template' }).waitFor();
    await page.getByText('briefly').first().waitFor();
    const { data } = (await (await api(`/v1/prompts/${encodeURIComponent(NAME)}`)).json()) as {
      data: { version: string; template: string };
    };
    expect(data).toMatchObject({ version: '3', template: 'Answer {{customer}} briefly: {{question}} ({{mood}})' });
    expectNoFaults(page);
  });

  it('accepts text typed over a selection, undoes it, and keeps the indentation at Enter', async () => {
    const page = await openPrompt();
    await page.keyboard.press('n');
    const editor = page.getByRole('dialog').getByRole('textbox', { name: 'Template' });
    await editor.waitFor();
    for (const text of ['{{customer}} asks', '{{question}} again', 'no variable']) {
      await type(page.getByRole('dialog'), 'Template', text);
      await expect.poll(() => editor.inputValue()).toBe(text);
    }
    await page.keyboard.press('Control+z');
    await expect.poll(() => editor.inputValue()).not.toBe('no variable');
    await page.keyboard.press('Control+a');
    await page.keyboard.type('every key counts');
    await expect.poll(() => editor.inputValue()).toBe('every key counts');
    await page.keyboard.press('Enter');
    await page.keyboard.type('  indented');
    await page.keyboard.press('Enter');
    await page.keyboard.type('alike');
    await expect.poll(() => editor.inputValue()).toBe('every key counts\n  indented\n  alike');
    expectNoFaults(page);
  });

  it('shows hostile texts as texts', async () => {
    const template = '<img src=x onerror="document.title=1">{{a}}\u202e\u0000'.replace('\u0000', '') + 'x'.repeat(9000);
    await api('/v1/prompts', { name: 'hostile', template: [{ role: '<b>system</b>', content: template }] });
    await api('/v1/prompts', { name: 'hostile', template: `${template} and more` });
    const page = await openPrompt('?version=2&against=1', '~/prompts/hostile', {
      context: { viewport: { width: 320, height: 700 } },
    });
    await page.getByRole('heading', { level: 2, name: 'Message 1' }).waitFor();
    await settled(page);
    expect(await textOf(page)).toContain('<b>system</b>');
    expect(await overflow(page)).toBe(0);
    await page.goto(orgPath('/prompts/hostile?version=1'));
    await settled(page);
    await page.getByRole('textbox', { name: 'Message 1, <b>system</b>' }).waitFor();
    expect(await overflow(page)).toBe(0);
    expect(await page.title()).not.toBe('1');
    expectNoFaults(page);
  });
});

describe('the labels of a prompt', () => {
  it('are shown at their versions, moved by keys, and removed', async () => {
    await api('/v1/prompts', { name: 'labeled', template: 'One' });
    await api('/v1/prompts', { name: 'labeled', template: 'Two' });
    const page = await openPrompt('?version=1', '~/prompts/labeled');
    await page.keyboard.press('l');
    const dialog = page.getByRole('dialog', { name: 'Labels of labeled' });
    await dialog.getByLabel('Label').fill('production');
    await page.keyboard.press('Control+Enter');
    await page.getByText('The label production names version 1.').waitFor();
    await page.keyboard.press('Escape');
    const versions = page.getByRole('navigation', { name: 'Versions' });
    await versions.getByRole('listitem').nth(1).getByText('production').waitFor();
    await page.goto(orgPath('/prompts/labeled?version=2'));
    await page.getByRole('button', { name: 'Edit labels' }).click();
    await dialog.getByRole('button', { name: 'Move production to version 2' }).click();
    await page.getByText('The label production names version 2.').waitFor();
    const { data } = (await (await api('/v1/prompts/labeled?label=production')).json()) as {
      data: { version: string };
    };
    expect(data.version).toBe('2');
    await dialog.getByRole('button', { name: 'Remove production' }).click();
    await page.getByText('The label production is removed.').waitFor();
    await dialog.getByText('No version has a label besides latest').waitFor();
  });
});

describe('the versions of a prompt', () => {
  it('stand in the order of time, and any two are compared by the address', async () => {
    const page = await openPrompt('?version=2');
    const list = versionsOf(page);
    expect((await list.getByRole('listitem').allInnerTexts()).at(-1)).toMatch(/^1\b/);
    await list.getByRole('link', { name: 'Compare 2 with 1' }).click();
    await page.getByRole('heading', { level: 2, name: 'Template' }).waitFor();
    expect(new URL(page.url()).searchParams.get('against')).toBe('1');
    await expect.poll(() => textOf(page)).toContain('politely,');
    await page.reload();
    await expect.poll(() => textOf(page)).toContain('politely,');
    expectNoFaults(page);
  });

  it('are compared message by message', async () => {
    const chat = (content: string) => [
      { role: 'system', content: 'You work in a shop.' },
      { role: 'user', content },
    ];
    await api('/v1/prompts', { name: 'chat', template: chat('Say {{a}}') });
    await api('/v1/prompts', { name: 'chat', template: [...chat('Say {{b}}'), { role: 'assistant', content: 'Yes' }] });
    const page = await openPrompt('', '~/prompts/chat');
    await page.keyboard.press('c');
    for (const title of ['Message 1, system', 'Message 2, user', 'Message 3, assistant'])
      await page.getByRole('heading', { level: 2, name: title }).waitFor();
    await expect.poll(() => textOf(page)).toContain('no difference');
    expectNoFaults(page);
  });

  it('have the usage that the API gives', async () => {
    const page = await openPrompt('?view=usage');
    const { data } = (await (await api(`/v1/prompts/${encodeURIComponent(NAME)}/usage`)).json()) as {
      data: { versions: { version: string; calls: number }[] };
    };
    const first = data.versions.find(({ version }) => version === '1');
    const row = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: '1', exact: true }) });
    expect(await row.getByRole('link').innerText()).toBe(String(first?.calls));
    await row.getByRole('link').click();
    await expect.poll(() => page.url()).toContain('prompt_version=1');
    expectNoFaults(page);
  });
});

describe('the playground', () => {
  it('shows in three clicks how a draft answers three real inputs differently', async () => {
    const page = await openPrompt('?version=1');
    await page.getByRole('tab', { name: 'Playground' }).click();
    await page.getByRole('group', { name: 'Draft of 1' }).waitFor();
    await type(page, 'Template of Draft of 1', 'Answer {{customer}} in two words: {{question}}');
    await page.getByRole('button', { name: 'Run 6 calls' }).click();
    await expect.poll(() => answers(page).count()).toBe(6);
    for (const question of QUESTIONS) await page.getByText(`in two words: ${question}`).waitFor();
    await page.getByRole('button', { name: 'Show differences' }).click();
    await page.getByRole('heading', { name: 'Version 1 and Draft of 1' }).nth(2).waitFor();
    await expect.poll(() => textOf(page)).toContain('two words');
    expectNoFaults(page);
  });

  it('streams three columns at once, stops them, and keeps what they said', async () => {
    const runs = ['1@gpt-4o', '2@gpt-4o-mini', '~2@other-model'].join(',');
    const page = await openPrompt(`?view=playground&runs=${encodeURIComponent(runs)}`);
    await page.getByRole('textbox', { name: 'question of input 1' }).fill('one two [hold] never said');
    await keepOneInput(page);
    await page.getByRole('button', { name: 'Run 3 calls' }).click();
    for (const model of ['gpt-4o', 'gpt-4o-mini', 'other-model'])
      await page.getByText(new RegExp(`^${model} answers: .*one two`)).waitFor();
    expect(await page.getByText(/^Running/).count()).toBe(4);
    await page.getByRole('button', { name: 'Stop' }).click();
    await expect.poll(() => page.getByText(/^Stopped/).count()).toBe(3);
    expect(await textOf(page)).not.toContain('never said');
    expect(new URL(page.url()).searchParams.get('runs')).toBe(runs);
    expectNoFaults(page);
  });

  it('links each run to its trace with its cost, and names the version that made it', async () => {
    const page = await openPrompt(`?view=playground&runs=${encodeURIComponent('2@gpt-4o-mini')}`);
    await keepOneInput(page);
    // The newest real call may be the one that the test above stopped.
    await page.getByRole('textbox', { name: 'question of input 1' }).fill('Where is my sofa?');
    await page.getByRole('button', { name: 'Run 1 call' }).click();
    const answer = page.getByRole('group', { name: 'Answer of Version 2 to input 1' });
    await answer.getByText('$').waitFor();
    const trace_id = (await answer.getByRole('link', { name: 'trace' }).getAttribute('href'))?.split('/').at(-1) ?? '';
    const { data } = (await (await api(`/v1/traces?trace_ids=${trace_id}`)).json()) as { data: { tags: string[] }[] };
    expect(data[0]?.tags).toEqual(['playground']);
    await eventually(async () => {
      const calls = (await (await api(`/v1/prompts/${encodeURIComponent(NAME)}/calls?version=2`)).json()) as {
        data: { trace_id: string; variables: unknown }[];
      };
      const made = calls.data.find((call) => call.trace_id === trace_id);
      return JSON.stringify(made?.variables ?? null).includes('"customer":"Ann"');
    });
    expectNoFaults(page);
  });

  it('shows the error of a provider at its answer, and asks for the values that are missing', async () => {
    const page = await openPrompt(`?view=playground&runs=${encodeURIComponent('1@gpt-4o')}`);
    await keepOneInput(page);
    await page.getByRole('textbox', { name: 'question of input 1' }).fill('[fail]');
    await page.getByRole('button', { name: 'Run 1 call' }).click();
    await page.getByText('The provider has no such model.').waitFor();
    await page.getByRole('combobox', { name: 'Model of Version 1' }).fill('');
    await page.getByText('Name a model for each column.').waitFor();
    await page.getByRole('button', { name: 'Remove input 1' }).click();
    await page.getByRole('combobox', { name: 'Model of Version 1' }).fill('gpt-4o');
    await page.getByText('Add an input.').waitFor();
    await page.getByRole('button', { name: 'Add input' }).click();
    await page.getByRole('menuitem', { name: 'By hand' }).click();
    await page.getByText('Input 1 has no value for customer.').waitFor();
  });

  it('takes inputs from a dataset, and saves a draft as the next version', async () => {
    await api('/v1/datasets', {
      name: 'questions',
      version: '1',
      items: [{ input: { customer: 'Bob', question: 'Where is it?' } }],
    });
    const page = await openPrompt('?view=playground&version=1');
    await page.getByRole('button', { name: 'Add input' }).click();
    await page.getByRole('menuitem', { name: 'From a dataset' }).click();
    await page.getByRole('checkbox').first().check();
    await page.getByRole('button', { name: 'Add 1 input' }).click();
    await page.getByText('item 0 of questions 1').waitFor();
    await type(page, 'Template of Draft of 1', 'Answer {{customer}} with a saved draft: {{question}}');
    await page.getByRole('button', { name: 'Save as version' }).click();
    await page.getByRole('button', { name: 'Save version' }).click();
    await page.getByRole('heading', { level: 2, name: 'Template' }).waitFor();
    await expect.poll(() => textOf(page)).toContain('with a saved draft');
    expectNoFaults(page);
  });

  it('keeps drafts and inputs over a reload of the page', async () => {
    const page = await openPrompt('?view=playground&version=1');
    await type(page, 'Template of Draft of 1', 'Half a draft for {{customer}}: {{question}}');
    await page.getByRole('textbox', { name: 'question of input 1' }).fill('Does it float?');
    await eventually(() => page.evaluate(() => Object.values(sessionStorage).join().includes('Does it float?')));
    await page.reload();
    await expect
      .poll(() => page.getByRole('textbox', { name: 'Template of Draft of 1' }).inputValue())
      .toContain('Half a draft');
    expect(await page.getByRole('textbox', { name: 'question of input 1' }).inputValue()).toBe('Does it float?');
    const other = await openPrompt('?view=playground&version=1');
    await other.getByRole('textbox', { name: 'question of input 1' }).waitFor();
    expect(await other.getByRole('textbox', { name: 'Template of Draft of 1' }).inputValue()).not.toContain('Half');
    expectNoFaults(page);
  });

  it('replays the trace of a real call, first without a call, then as a comparison', async () => {
    await aPrompt('replayed', { org_id: inject('portal').org_id, api });
    const page = await openPrompt('?view=playground', '~/prompts/replayed');
    await page.getByRole('button', { name: 'Replay on trace' }).first().click();
    const dialog = page.getByRole('dialog', { name: 'Replay on trace' });
    await dialog.getByText('politely,').first().waitFor();
    await dialog.getByRole('button', { name: 'Replay 1 call and compare' }).click();
    await expect.poll(() => page.url(), { timeout: 30_000 }).toMatch(/\/compare\/[^/]+\/[^/]+$/);
    expectNoFaults(page);
  });

  it('names the setting when no provider of models is configured', async () => {
    const page = await openPage({ at: '/login' });
    await page.route('**/v1/about', async (route) => {
      const answer = await route.fetch();
      const body = (await answer.json()) as { data: object };
      await route.fulfill({ response: answer, json: { ...body, data: { ...body.data, models: false } } });
    });
    await page.goto(orgPath(`/prompts/${encodeURIComponent(NAME)}?view=playground`));
    await page.getByText('SERVICE_LLM_BASE_URL').waitFor();
    expect(await page.getByRole('button', { name: /^Run/ }).count()).toBe(0);
    expectNoFaults(page);
  });

  it.each(['light', 'dark'] as const)('meets WCAG 2.2 AA with answers in the %s theme', async (colorScheme) => {
    const page = await openPrompt('?view=playground&version=1', PATH, { context: { colorScheme } });
    // The newest real calls are those of the tests above, some of which are never answered.
    for (const number of [1, 2, 3])
      await page.getByRole('textbox', { name: `question of input ${number}` }).fill('Is the shop open on Sunday?');
    await page.getByRole('button', { name: 'Run 6 calls' }).click();
    await page.getByText(/s, \$/).nth(5).waitFor();
    await settled(page);
    expect(await axeViolations(page)).toEqual([]);
    await page.setViewportSize({ width: 320, height: 700 });
    expect(await overflow(page)).toBe(0);
    expectNoFaults(page);
  });
});
