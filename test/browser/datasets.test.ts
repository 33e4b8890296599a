// Datasets: made of traces by keys alone, changed into versions, and compared item by item.
import { randomUUID } from 'node:crypto';
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

const AGENT = 'dataset-agent';
const HOSTILE = '<img src=x onerror="document.title=1">\u202e';
const QUESTION = `May I return a sofa? ${HOSTILE}`;

interface Dataset {
  dataset_id: string;
  version: string;
  item_count: number;
}
interface Item {
  input: Record<string, unknown>;
  expected: Record<string, unknown> | null;
  metadata: Record<string, unknown>;
}

const versionsOf = async (name: string): Promise<Dataset[]> =>
  ((await (await api(`/v1/datasets?name=${encodeURIComponent(name)}`)).json()) as { data: Dataset[] }).data;
const itemsOf = async ({ dataset_id }: Dataset): Promise<Item[]> =>
  ((await (await api(`/v1/datasets/${dataset_id}/items`)).json()) as { data: Item[] }).data;
const make = async (items: unknown[], name: string = randomUUID()): Promise<Dataset & { name: string }> =>
  ((await (await api('/v1/datasets', { name, version: '1', items })).json()) as { data: Dataset & { name: string } })
    .data;

beforeAll(async () => {
  const ids = ['dataset-run-1', 'dataset-run-2'];
  await api(`/orgs/${inject('portal').org_id}/ingest/custom`, {
    events: ids.map((trace_id, at) => ({
      name: 'answer',
      span_id: `${trace_id}-root`,
      trace_id,
      agent_id: AGENT,
      outcome: 'success',
      duration_ms: 10,
      attributes: {
        input: JSON.stringify([
          { role: 'system', content: 'Be brief.' },
          { role: 'user', content: at === 0 ? QUESTION : 'And a lamp?' },
        ]),
        output: at === 0 ? 'Within 30 days.' : 'The same.',
        span_kind: 'llm',
      },
    })),
  });
  for (const id of ids)
    await eventually(
      async () => {
        const { data } = (await (await api(`/v1/traces?trace_ids=${id}`)).json()) as { data: unknown[] };
        return data.length === 1;
      },
      { what: `${id} to be stored` },
    );
});

const dialog = (page: Page): Locator => page.getByRole('dialog', { name: 'Add to dataset' });
const items = (page: Page): Locator => page.getByRole('grid', { name: 'Items' }).getByRole('row');

describe('selected traces', () => {
  it('become a dataset by x, d, a name and Enter', async () => {
    const name = `from traces ${randomUUID()}`;
    const page = await openPage({ at: `~/traces?t=24h&agent_id=${AGENT}` });
    await settled(page);
    await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(2).waitFor();
    for (const key of ['j', 'x', 'j', 'x', 'd']) await page.keyboard.press(key);
    await dialog(page).getByRole('button', { name: 'Add 2 items' }).waitFor();
    await page.keyboard.type(name);
    await page.keyboard.press('Enter');
    await dialog(page).waitFor({ state: 'hidden' });
    const [made] = await versionsOf(name);
    const stored = made === undefined ? [] : await itemsOf(made);
    expect(stored.map(({ input, expected }) => [input['text'], expected?.['answer']]).sort()).toEqual([
      ['And a lamp?', 'The same.'],
      [QUESTION, 'Within 30 days.'],
    ]);
    await page.getByRole('link', { name: 'Show the dataset' }).press('Enter');
    await settled(page);
    await items(page).filter({ hasText: '<img src=x' }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expectNoFaults(page);
  });
});

describe('a trace', () => {
  it('goes into the newest version of a dataset with a corrected answer', async () => {
    const { name } = await make([{ input: { text: 'first' } }]);
    const page = await openPage({ at: '~/traces/dataset-run-2' });
    await settled(page);
    await page.keyboard.press('d');
    await dialog(page).getByLabel('Dataset').fill(name);
    await dialog(page).getByLabel('Answer', { exact: true }).fill('Within 14 days.');
    await page.keyboard.press('Control+Enter');
    await dialog(page).waitFor({ state: 'hidden' });
    const [newest, first] = await versionsOf(name);
    expect([newest?.version, newest?.item_count, first?.item_count]).toEqual(['2', 2, 1]);
    const stored = newest === undefined ? [] : await itemsOf(newest);
    expect(stored[1]).toMatchObject({
      input: { text: 'And a lamp?' },
      expected: { answer: 'Within 14 days.' },
      metadata: { trace_id: 'dataset-run-2' },
    });
    expectNoFaults(page);
  });
});

describe('a dataset', () => {
  it('becomes a new version by an edit and a removal, which then shows what differs', async () => {
    const dataset = await make(
      ['one', 'two', 'three'].map((text) => ({ input: { text }, expected: { answer: text } })),
    );
    const page = await openPage({ at: `~/datasets/${dataset.dataset_id}` });
    await settled(page);
    const panel = page.getByRole('region', { name: 'Item', exact: true });
    await panel.getByRole('button', { name: 'Edit item' }).click();
    const editor = panel.getByRole('textbox', { name: 'Item as JSON' });
    await editor.click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText('{"input": {"text": "uno"}, "expected": {"answer": "one"}}');
    await panel.getByRole('button', { name: 'Keep change' }).click();
    await items(page).filter({ hasText: 'changed' }).waitFor();
    await items(page).filter({ hasText: 'three' }).click();
    await panel.getByRole('button', { name: 'Remove item' }).click();
    await page.getByText('2 changes are not saved.').waitFor();
    await page.getByRole('button', { name: 'Save as a new version' }).click();
    await page.waitForURL((url) => url.searchParams.get('against') === dataset.dataset_id);
    await page.getByText('Items: 1 changed, 1 removed').waitFor();
    const [newest] = await versionsOf(dataset.name);
    expect(newest?.version).toBe('2');
    expect((newest === undefined ? [] : await itemsOf(newest)).map(({ input }) => input['text'])).toEqual([
      'uno',
      'two',
    ]);
    await eventually(async () => (await page.locator('ins').allInnerTexts()).includes('uno'), {
      what: 'the changed word',
    });
    expectNoFaults(page);
  });

  it('is deleted version by version, and the newest one that is left is shown', async () => {
    const first = await make([{ input: { text: 'one' } }]);
    await api(`/v1/datasets/${first.dataset_id}/versions`, { add: [{ input: { text: 'two' } }] });
    const [second] = await versionsOf(first.name);
    const page = await openPage({ at: `~/datasets/${second?.dataset_id ?? ''}` });
    const remove = page.getByRole('button', { name: 'Delete version' });
    const question = page.getByRole('dialog', { name: /^Delete / });
    await items(page).filter({ hasText: 'two' }).waitFor();
    await remove.click();
    await question.getByText('No eval was run over it.').waitFor();
    await question.getByRole('button', { name: 'Delete 2 items' }).click();
    await page.waitForURL((url) => url.pathname === orgPath(`/datasets/${first.dataset_id}`));
    expect((await versionsOf(first.name)).map(({ version }) => version)).toEqual(['1']);
    await question.waitFor({ state: 'detached' });
    await remove.click();
    await question.getByRole('button', { name: 'Delete 1 item' }).press('Enter');
    await page.waitForURL((url) => url.pathname === orgPath('/datasets'));
    expect(await versionsOf(first.name)).toEqual([]);
    expectNoFaults(page);
  });

  it('refuses an item that is not one, and says why', async () => {
    const { dataset_id } = await make([{ input: { text: 'one' } }]);
    const page = await openPage({ at: `~/datasets/${dataset_id}` });
    await settled(page);
    const panel = page.getByRole('region', { name: 'Item', exact: true });
    await panel.getByRole('button', { name: 'Edit item' }).click();
    await panel.getByRole('textbox', { name: 'Item as JSON' }).click();
    await page.keyboard.press('Control+a');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText('{"input": "one"}');
    await panel.getByRole('button', { name: 'Keep change' }).click();
    await panel.getByText(/^input must be an object/).waitFor();
    expectNoFaults(page);
  });

  it('is made from a name and items, and stands in the list', async () => {
    const name = `by hand ${HOSTILE} ${randomUUID()}`;
    const page = await openPage({ at: '~/datasets' });
    await settled(page);
    await page.keyboard.press('n');
    const form = page.getByRole('dialog', { name: 'Create dataset' });
    await form.getByLabel('Name').fill(name);
    await form.getByRole('textbox', { name: 'Items' }).click();
    await page.keyboard.insertText('[{"input": {"text": "one"}}]');
    await form.getByRole('button', { name: 'Create dataset' }).click();
    await page.waitForURL((url) => url.pathname.startsWith(orgPath('/datasets/ds_')));
    await page.goBack();
    await settled(page);
    await page.getByRole('grid', { name: 'Datasets' }).getByRole('row').filter({ hasText: 'by hand' }).waitFor();
    expect(await page.locator('img').count()).toBe(0);
    expectNoFaults(page);
  });
});
