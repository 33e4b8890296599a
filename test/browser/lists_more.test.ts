// The lists while data arrives, their views, their export, and the page that shows how to send data.
import { readFile } from 'node:fs/promises';
import type { Locator, Page } from 'playwright-core';
import { expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

let sent = 0;
/** Returns a name that no other test uses. */
const unique = (name: string): string => `${name}-${Date.now()}-${++sent}`;

/** Sends traces of one span each and returns their ids. */
async function send(agent_id: string, names: readonly string[]): Promise<string[]> {
  const ids = names.map(() => unique('trc'));
  const events = names.map((name, at) => ({
    name,
    outcome: 'success',
    duration_ms: 100 * (at + 1),
    trace_id: ids[at],
    span_id: 'root',
    attributes: { agent_id },
  }));
  await api(`/orgs/${inject('portal').org_id}/ingest/custom`, { events });
  return ids;
}

interface Listed {
  data: { trace_id: string; session_id: string | null; user_id: string | null }[];
  meta: { total: number };
}
const list = async (query: string): Promise<Listed> => (await (await api(`/v1/traces?${query}`)).json()) as Listed;
const landed = (agent_id: string, count: number): Promise<void> =>
  eventually(async () => (await list(`agent_id=${agent_id}&limit=1`)).meta.total === count, { what: 'landed traces' });

const row = (page: Page, name: string): Locator => page.getByRole('grid').getByRole('link', { name, exact: true });
const says = (page: Page, count: number): Promise<void> =>
  page.getByText(`${count} ${count === 1 ? 'trace' : 'traces'}`, { exact: true }).waitFor();
const paramOf = (page: Page, name: string): string | null => new URL(page.url()).searchParams.get(name);

async function openList(query: string): Promise<Page> {
  const page = await openPage({ at: `~/traces${query}` });
  await settled(page);
  await page.getByText(/^[\d,]+ traces?$/).waitFor();
  return page;
}

it('live mode shows a trace that arrives while the page is open', async () => {
  const agent_id = unique('live');
  await send(agent_id, ['already there']);
  await landed(agent_id, 1);
  const page = await openList(`?agent_id=${agent_id}&live=1`);
  await row(page, 'already there').waitFor();
  await send(agent_id, ['arrives later']);
  await row(page, 'arrives later').waitFor();
  await says(page, 2);
  expectNoFaults(page);
});

it('without live mode a trace that arrives waits behind a button that says how many are new', async () => {
  const agent_id = unique('waiting');
  await send(agent_id, ['already there']);
  await landed(agent_id, 1);
  const page = await openList(`?agent_id=${agent_id}`);
  await row(page, 'already there').waitFor();
  await send(agent_id, ['arrives later']);
  const show = page.getByRole('button', { name: 'Show 1 new' });
  await show.waitFor();
  expect(await row(page, 'arrives later').count()).toBe(0);
  await show.click();
  await row(page, 'arrives later').waitFor();
  await show.waitFor({ state: 'hidden' });
  expectNoFaults(page);
});

it('previews of a long list are asked for in requests that the API accepts', async () => {
  const agent_id = unique('many');
  await send(
    agent_id,
    Array.from({ length: 70 }, (_, at) => `run ${at}`),
  );
  await landed(agent_id, 70);
  const page = await openPage({ at: '~/me' });
  const statuses: number[] = [];
  page.on('response', (answer) => {
    if (new URL(answer.url()).pathname === '/v1/traces/previews') statuses.push(answer.status());
  });
  await page.goto(orgPath(`/traces?agent_id=${agent_id}&cols=name,first_text,verdicts`));
  await settled(page);
  await says(page, 70);
  await page.getByRole('grid').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('End');
  await page.getByRole('row').and(page.locator('[aria-rowindex="71"]')).waitFor();
  await settled(page);
  expect(statuses.length).toBeGreaterThanOrEqual(2);
  expect(new Set(statuses)).toEqual(new Set([200]));
  expectNoFaults(page);
});

it('a view is saved for the organization, chosen by its tab, and deleted', async () => {
  const name = unique('Timeouts');
  const saved = async (): Promise<boolean> => {
    const { data } = (await (await api('/v1/views')).json()) as { data: { name: string }[] };
    return data.some((view) => view.name === name);
  };
  const page = await openList('?t=7d&outcome=timeout');
  await page.keyboard.press('s');
  const dialog = page.getByRole('dialog', { name: 'Save view' });
  await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
  await dialog.getByRole('checkbox').check();
  await page.keyboard.press('Enter');
  const tab = page.getByRole('tab', { name: `${name} (shared)` });
  await tab.waitFor();
  expect(await saved()).toBe(true);

  await page.getByRole('tab', { name: 'All', exact: true }).click();
  await page.waitForURL((url) => !url.searchParams.has('outcome'));
  await tab.click();
  await page.waitForURL((url) => url.searchParams.get('outcome') === 'timeout');

  await page.getByRole('button', { name: `Actions of the view ${name}` }).click();
  await page.getByRole('menuitem', { name: 'Delete view' }).click();
  await tab.waitFor({ state: 'hidden' });
  expect(await saved()).toBe(false);
  expectNoFaults(page);
});

it('selected traces are exported into one NDJSON file', async () => {
  const agent_id = unique('export');
  const ids = await send(agent_id, ['one', 'two']);
  await landed(agent_id, 2);
  const page = await openList(`?agent_id=${agent_id}`);
  await row(page, 'one').waitFor();
  for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
  await page.getByText('2 selected', { exact: true }).waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export NDJSON' }).click();
  const file = await readFile(await (await download).path(), 'utf8');
  const spans = file
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { trace_id: string; name: string });
  expect(new Map(spans.map(({ trace_id, name }) => [name, trace_id]))).toEqual(
    new Map([
      ['one', ids[0]],
      ['two', ids[1]],
    ]),
  );
  expectNoFaults(page);
});

it('the handles of a facet are moved by keys and filter the list', async () => {
  const page = await openList('?t=90d&tags=demo');
  const handle = page.getByRole('slider', { name: 'Duration from' });
  await handle.focus();
  await page.keyboard.press('ArrowRight');
  await page.waitForURL((url) => url.searchParams.has('min_duration_ms'));
  await settled(page);
  await says(page, (await list(`limit=1&tags=demo&min_duration_ms=${paramOf(page, 'min_duration_ms')}`)).meta.total);
  expectNoFaults(page);
});

it('a drag over the histogram becomes the time of the list', async () => {
  const page = await openList('?t=24h&tags=demo');
  const histogram = page.getByRole('slider', { name: /^Traces over time: [1-9]/ });
  await histogram.waitFor();
  const box = await histogram.boundingBox();
  if (box === null) throw new Error('the histogram is not on the screen');
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + box.width * 0.25, y);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, y, { steps: 4 });
  await page.mouse.up();
  await page.waitForURL((url) => url.searchParams.has('since') && url.searchParams.has('until'));
  const length = Date.parse(paramOf(page, 'until') ?? '') - Date.parse(paramOf(page, 'since') ?? '');
  const hours = length / 3_600_000;
  expect(hours).toBeGreaterThan(5);
  expect(hours).toBeLessThan(8);
  expectNoFaults(page);
});

it('T shows the histogram as a table whose numbers add up to the list', async () => {
  const agent_id = unique('table');
  await send(agent_id, ['one', 'two', 'three']);
  await landed(agent_id, 3);
  const page = await openList(`?agent_id=${agent_id}`);
  await page.keyboard.press('Shift+T');
  const table = page.getByRole('table');
  await table.waitFor();
  const numbers = await table.locator('tbody tr td:nth-child(2)').allInnerTexts();
  expect(numbers.map(Number).reduce((sum, one) => sum + one, 0)).toBe(3);
  await page.keyboard.press('Shift+T');
  await table.waitFor({ state: 'hidden' });
  expectNoFaults(page);
});

it('columns are chosen and moved by keys, kept after a reload, and overridden by the address', async () => {
  const page = await openList('?t=7d&tags=demo');
  const heads = (): Promise<string[]> => page.getByRole('columnheader').allInnerTexts();
  await page.getByRole('button', { name: 'Columns' }).focus();
  await page.keyboard.press('Enter');
  const dialog = page.getByRole('dialog', { name: 'Columns' });
  await dialog.getByRole('checkbox', { name: 'Tags' }).focus();
  await page.keyboard.press('Space');
  await dialog.getByRole('button', { name: 'Move Name up' }).focus();
  await page.keyboard.press('Enter');
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  await page.reload();
  await page.getByRole('grid').getByRole('row').nth(1).waitFor();
  const own = await heads();
  expect(own).not.toContain('Tags');
  expect(own.indexOf('Name')).toBe(own.findIndex((head) => head.startsWith('Started')) - 1);
  await page.goto(orgPath('/traces?t=7d&tags=demo&cols=tags,name'));
  await page.getByRole('grid').getByRole('row').nth(1).waitFor();
  expect((await heads()).slice(2)).toEqual(['Tags', 'Name']);
  expectNoFaults(page);
});

it('a user leads to a session, and a session to its traces', async () => {
  const { data } = await list('limit=1&agent_id=kitchenware-support');
  const { user_id } = data[0] ?? {};
  const page = await openPage({ at: `~/users/${encodeURIComponent(user_id ?? '')}` });
  await settled(page);
  await page
    .locator(`a[href^="${orgPath('/sessions/')}"]`)
    .first()
    .click();
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/sessions/')));
  await settled(page);
  await page
    .locator(`a[href^="${orgPath('/traces/')}"]`)
    .first()
    .click();
  await page.waitForURL((url) => url.pathname.startsWith(orgPath('/traces/')));
  await settled(page);
  expectNoFaults(page);
});

it('Start turns to a trace when it arrives', async () => {
  const page = await openPage({ at: '~/start' });
  await settled(page);
  const name = unique('first run');
  const [id = ''] = await send('planner', [name]);
  await page
    .getByText(/^arrived, 1 span/)
    .first()
    .waitFor();
  await page.getByRole('link', { name, exact: true }).click();
  await page.waitForURL((url) => url.pathname === orgPath(`/traces/${id}`));
  expectNoFaults(page);
});

it('Start shows a refused request with its path and the reason', async () => {
  const page = await openPage({ at: '~/start' });
  await settled(page);
  const { url, org_id, api_key } = inject('portal');
  const path = `/orgs/${org_id}/ingest/custom`;
  const answer = await fetch(url + path, {
    method: 'POST',
    headers: { 'x-org-api-key': api_key, 'content-type': 'application/json' },
    body: JSON.stringify({ events: [{ name: 'plan', outcome: 'maybe', duration_ms: 40 }] }),
  });
  expect(answer.ok).toBe(false);
  const { code, detail } = (await answer.json()) as { code: string; detail: string };
  const line = page.getByRole('list', { name: 'Refused requests' }).getByRole('listitem').filter({ hasText: path });
  await line.first().waitFor();
  const words = await line.first().innerText();
  for (const part of [code, detail]) expect(words).toContain(part);
  expect(words).toContain(api_key.slice(0, 12));
  expectNoFaults(page);
});
