// Two traces compared, by keys alone: from a failed trace, from the list, and from a replay.
import type { Locator, Page } from 'playwright-core';
import { beforeAll, describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';

const AGENT = 'compare-agent';
const HOSTILE = '<img src=x onerror="document.title=1">\u202e\u0000 "quoted"';

interface Step {
  name: string;
  span_kind?: 'llm' | 'tool';
  outcome?: 'success' | 'error';
  duration_ms?: number;
  attributes?: Record<string, unknown>;
}

/** Sends one run of an agent and resolves when its outline has all spans. */
async function send(
  traceId: string,
  outcome: 'success' | 'error',
  steps: readonly Step[],
  agent_id = AGENT,
): Promise<void> {
  const root = `${traceId}-root`;
  const events = [
    { name: 'answer', span_id: root, outcome, duration_ms: 900 },
    ...steps.map(({ span_kind = 'tool', attributes = {}, ...step }, at) => ({
      outcome: 'success',
      duration_ms: 100,
      ...step,
      span_id: `${traceId}-${at}`,
      parent_span_id: root,
      attributes: { ...attributes, span_kind },
    })),
  ];
  await api(`/orgs/${inject('portal').org_id}/ingest/custom`, {
    events: events.map((event) => ({ agent_id, ...event, trace_id: traceId })),
  });
  await eventually(
    async () => {
      const answer = await api(`/v1/traces/${traceId}/outline`);
      return ((await answer.json()) as { meta: { total: number } }).meta.total === events.length;
    },
    { what: `${events.length} spans of ${traceId} to be stored` },
  );
}

const WORKED = 'compare-worked';
const FAILED = 'compare-failed';

beforeAll(async () => {
  const prompt = (days: number): string =>
    JSON.stringify([{ role: 'user', content: `May I return a sofa?\nIt came ${days} days ago.` }]);
  await send(WORKED, 'success', [
    { name: 'search', attributes: { input: prompt(3), output: 'Yes, within 30 days.' } },
    { name: 'check_stock' },
    { name: HOSTILE, attributes: { input: HOSTILE } },
  ]);
  await send(FAILED, 'error', [
    { name: 'search', attributes: { input: prompt(40), output: `No. ${HOSTILE}` }, duration_ms: 700 },
    { name: HOSTILE, attributes: { input: `${HOSTILE}!` }, outcome: 'error' },
  ]);
});

const rows = (page: Page): Locator => page.getByRole('grid', { name: 'Aligned spans' }).getByRole('row');
const pair = (page: Page): Locator => page.getByRole('region', { name: 'Pair of spans' });

async function openComparison(query = ''): Promise<Page> {
  const page = await openPage({ at: `~/compare/${WORKED}/${FAILED}${query}` });
  await settled(page);
  await rows(page).first().waitFor();
  return page;
}

describe('a failed trace', () => {
  it('is compared with the last success of its agent and name by one key', async () => {
    const page = await openPage({ at: `~/traces/${FAILED}` });
    await settled(page);
    await page.keyboard.press('c');
    await page.waitForURL((url) => url.pathname === orgPath(`/compare/${WORKED}/${FAILED}`));
    await settled(page);
    await rows(page).filter({ hasText: 'only in the baseline' }).filter({ hasText: 'check_stock' }).waitFor();
    await page
      .getByText(/beyond the threshold of the policy/)
      .first()
      .waitFor({ state: 'attached' });
    expectNoFaults(page);
  });
});

describe('a trace without a run to compare it with', () => {
  it('leads to the choice of another trace, and says why', async () => {
    const traceId = `compare-alone-${Date.now()}`;
    const events = [{ name: traceId, outcome: 'error', duration_ms: 5, trace_id: traceId, agent_id: traceId }];
    await api(`/orgs/${inject('portal').org_id}/ingest/custom`, { events });
    await eventually(async () => (await api(`/v1/traces/${traceId}`)).status === 200, { what: 'the trace' });
    const page = await openPage({ at: `~/traces/${traceId}` });
    await settled(page);
    await page.keyboard.press('c');
    await page.getByRole('dialog', { name: 'Choose a baseline' }).waitFor();
    await page.getByText('No other trace of this agent and name succeeded. Choose another trace.').waitFor();
    expectNoFaults(page);
  });
});

describe('a comparison', () => {
  it('shows what changed, unfolds the rest, and opens a pair with the difference of its texts', async () => {
    const page = await openComparison();
    await page.keyboard.press('j');
    await rows(page).filter({ hasText: 'search' }).click();
    await pair(page).getByRole('heading', { name: 'Input' }).waitFor();
    await eventually(async () => (await pair(page).locator('ins').allInnerTexts()).includes('40'), {
      what: 'the changed word of the input',
    });
    await page.waitForURL((url) => url.searchParams.get('pair') === `${WORKED}-0`);
    expectNoFaults(page);
  });

  it('opens the pair that its address names', async () => {
    const page = await openComparison(`?pair=${WORKED}-0`);
    await pair(page).getByRole('heading', { name: 'Output' }).waitFor();
    expectNoFaults(page);
  });

  it('swaps both sides by x', async () => {
    const page = await openComparison();
    await page.keyboard.press('x');
    await page.waitForURL((url) => url.pathname === orgPath(`/compare/${FAILED}/${WORKED}`));
    await settled(page);
    await rows(page).filter({ hasText: 'only in the candidate' }).filter({ hasText: 'check_stock' }).waitFor();
    expectNoFaults(page);
  });

  it('shows names and texts with markup as texts', async () => {
    const page = await openComparison('?only=all');
    await rows(page).filter({ hasText: '<img src=x' }).click();
    await pair(page).getByRole('heading', { name: 'Input' }).waitFor();
    await settled(page);
    expect(await page.locator('img').count()).toBe(0);
    expectNoFaults(page);
  });

  it('says which trace is missing and keeps the other', async () => {
    const page = await openPage({ at: `~/compare/${WORKED}/no-such-trace` });
    await settled(page);
    await page.getByRole('alert').filter({ hasText: 'the candidate' }).waitFor();
    await page.getByRole('link', { name: 'answer' }).waitFor();
  });
});

describe('the list of traces', () => {
  it('compares two selected traces by c', async () => {
    const page = await openPage({ at: `~/traces?t=24h&agent_id=${AGENT}` });
    await settled(page);
    await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(2).waitFor();
    for (const key of ['j', 'x', 'j', 'x', 'c']) await page.keyboard.press(key);
    await page.waitForURL((url) => url.pathname === orgPath(`/compare/${WORKED}/${FAILED}`));
    expectNoFaults(page);
  });
});

describe('a replay', () => {
  it('shows what it would send, calls the models after a second step, and leads to the comparison', async () => {
    // A replay is a trace of the same agent: other tests take the newest trace of theirs.
    const replayed = 'compare-replayed';
    const input = JSON.stringify([{ role: 'user', content: 'May I return a sofa?' }]);
    const call = { model: 'gpt-4o-mini', input, output: 'Yes, within 30 days.' };
    await send(replayed, 'success', [{ name: 'call', span_kind: 'llm', attributes: call }], 'replayed-agent');
    const page = await openPage({ at: `~/traces/${replayed}` });
    await settled(page);
    await page.keyboard.press('r');
    const dialog = page.getByRole('dialog', { name: 'Replay trace' });
    await dialog.getByText('Nothing was sent yet.').waitFor();
    await dialog.getByRole('button', { name: /^Replay \d+ model calls?$/ }).click();
    const link = dialog.getByRole('button', { name: 'Compare with the replay', disabled: false });
    await link.waitFor();
    await dialog.getByRole('heading', { name: 'Answer' }).first().waitFor();
    await link.click();
    await page.waitForURL((url) => url.pathname.startsWith(orgPath(`/compare/${replayed}/`)));
    await settled(page);
    await rows(page).first().waitFor();
    expectNoFaults(page);
  });
});
