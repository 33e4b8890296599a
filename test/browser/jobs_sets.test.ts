// The jobs of people who make test sets, judge and pay, each with at most the clicks and keys that it
// may take.
import type { Page } from 'playwright-core';
import { describe, expect, inject, it } from 'vitest';
import { eventually } from '../support/wait.ts';
import { api, expectNoFaults, openPage, orgPath, settled } from './support/browser.ts';
import { Hands, pressSequence } from './support/hands.ts';
import { OwnOrg } from './support/own_org.ts';

let made = 0;
const unique = (name: string): string => `${name}-${Date.now()}-${++made}`;

/** Sends traces of one agent with answers. Resolves with their ids once they are listed. */
async function send(agent_id: string, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => unique('trc'));
  const events = ids.map((trace_id, at) => ({
    name: 'answer a customer',
    trace_id,
    span_id: 'root',
    outcome: 'error',
    duration_ms: 100 + at,
    attributes: { agent_id, input: `Question ${at}`, response: at % 2 === 0 ? 'On Monday.' : 'Tomorrow.' },
  }));
  await api(`/orgs/${inject('portal').org_id}/ingest/custom`, { events });
  await eventually(
    async () => {
      const answer = await api(`/v1/traces?agent_id=${agent_id}&limit=1`);
      return ((await answer.json()) as { meta: { total: number } }).meta.total === count;
    },
    { what: 'landed traces' },
  );
  return ids;
}

describe('a test set of what went wrong', () => {
  it('takes x on each row, d, a name and Enter', async () => {
    const agent_id = unique('job-set');
    await send(agent_id, 3);
    const page = await openPage({ at: `~/traces?t=24h&outcome=error&agent_id=${agent_id}` });
    await settled(page);
    await page.getByRole('grid', { name: 'Traces' }).getByRole('row').nth(3).waitFor();
    const hands = new Hands(page);
    for (let n = 0; n < 3; n++) await hands.press('j', 'x');
    await hands.press('d');
    const dialog = page.getByRole('dialog', { name: 'Add to dataset' });
    await dialog.getByRole('button', { name: 'Add 3 items' }).waitFor();
    const name = unique('went wrong');
    await hands.type(name);
    await hands.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    const { data } = (await (await api(`/v1/datasets?name=${name}`)).json()) as { data: { item_count: number }[] };
    expect(data.map(({ item_count }) => item_count)).toEqual([3]);
    // For each of the three rows j and x, then d and Enter.
    hands.expectAtMost({ clicks: 0, keys: 8 });
    expectNoFaults(page);
  });
});

describe('a rule for live traffic', () => {
  it('is written on one screen beside its verdicts on 20 traces, and saved by a key', async () => {
    const agent_id = unique('job-judge');
    await send(agent_id, 24);
    const page = await openPage({ at: '~/judges' });
    await settled(page);
    await page.getByRole('link', { name: 'Create judge' }).waitFor();
    const hands = new Hands(page);
    await hands.press('n');
    await page.getByRole('textbox', { name: 'Name' }).waitFor();
    const at = page.url();
    await page.getByRole('textbox', { name: 'Name' }).fill(unique('No Monday'));
    await page.getByRole('textbox', { name: 'Agents' }).fill(agent_id);
    await page.getByText('Matches 24 traces of the last 24 h').waitFor();
    await page.getByRole('textbox', { name: 'Text', exact: true }).fill('Monday');
    await page.getByText('10 of 20 pass, 10 fail').waitFor();
    expect(await page.getByRole('list', { name: 'Traces with their verdicts' }).getByRole('listitem').count()).toBe(20);
    expect(page.url()).toBe(at);
    await hands.press('Control+Enter');
    await page.getByRole('button', { name: 'Edit judge' }).waitFor();
    hands.expectAtMost({ clicks: 0, keys: 2 });
    expectNoFaults(page);
  });
});

describe('labelling', () => {
  /** Returns the trace on the screen, by the link to its page. */
  const shown = async (page: Page): Promise<string> =>
    (await page.getByRole('link', { name: 'Open the full trace' }).first().getAttribute('href')) ?? '';

  it('takes two keys for each of 50 traces, and the next one is there when the answer is saved', async () => {
    const traces = 50;
    const scores = [{ name: 'correct', type: 'categorical', options: ['yes', 'no'] }];
    const made_queue = await api('/v1/annotation-queues', { name: unique('Job'), scores });
    const { queue_id } = ((await made_queue.json()) as { data: { queue_id: string } }).data;
    await api(`/v1/annotation-queues/${queue_id}/items`, { trace_ids: await send(unique('job-label'), traces) });
    const page = await openPage({ at: `~/annotate/${queue_id}/label` });
    await page.getByRole('form', { name: 'Scores' }).waitFor();
    await settled(page);
    const hands = new Hands(page);
    for (let n = 0; n < traces; n++) {
      const before = await shown(page);
      await hands.press(n % 3 === 0 ? '2' : '1', 'Enter');
      if (n < traces - 1) await eventually(async () => (await shown(page)) !== before);
    }
    await page.getByText('The queue is done').waitFor();
    hands.expectAtMost({ clicks: 0, keys: 2 * traces });
    await eventually(async () => {
      const answer = await api(`/v1/annotation-queues/${queue_id}/progress`);
      return ((await answer.json()) as { data: { done: number } }).data.done === traces;
    });
    expectNoFaults(page);
  });
});

describe('money', () => {
  const DAYS = 20;
  const dayBefore = (ago: number): string => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10);

  /** Makes an organization in which two departments spent something on each day. */
  async function spent(): Promise<OwnOrg> {
    const org = await OwnOrg.make();
    const events = Array.from({ length: DAYS }, (_, at) => at + 1).flatMap((ago) =>
      ['sales', 'research'].map((department, at) => ({
        name: 'call',
        started_at: `${dayBefore(ago)}T10:00:00Z`,
        ended_at: `${dayBefore(ago)}T10:00:01Z`,
        outcome: 'success',
        attributes: {
          span_kind: 'llm',
          model: 'gpt-4o',
          agent_id: 'planner',
          department,
          input_tokens: 100,
          output_tokens: 10,
          cost_usd: (at + 1) * (1 + (ago % 4) / 10),
        },
      })),
    );
    await org.data('POST', `/orgs/${org.org_id}/ingest/custom`, { events });
    const tokens = async (): Promise<number> =>
      (await org.data<{ tokens: { used: number } }>('GET', '/v1/budgets')).tokens.used;
    await eventually(async () => (await tokens()) >= events.length * 110, { what: 'the costs', withinMs: 60_000 });
    return org;
  }

  const dollars = (usd: number): string =>
    `$${usd.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })}`;

  it('says with one click what a department spent and where the month ends, with forecast and limit in one picture', async () => {
    const org = await spent();
    await org.data('PUT', `/orgs/${org.org_id}/budget`, { tokens: { soft_limit: 500_000, hard_limit: 1_000_000 } });
    const page = await org.open('admin', '/costs');
    await page.getByRole('tab', { name: 'Department' }).click();
    await page.getByRole('row', { name: /research/ }).waitFor();
    await page.goto(`/o/${org.org_id}`);
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('link', { name: 'Costs', exact: true }));
    interface Series {
      groups: { group: { department: string | null }; cost_usd: number }[];
    }
    const { groups } = await org.data<Series>('GET', '/v1/cost/series?days=30&group_by=department');
    const research = groups.find(({ group }) => group.department === 'research');
    await page
      .getByRole('row', { name: /research/ })
      .getByText(dollars(research?.cost_usd ?? -1), { exact: true })
      .waitFor();
    interface Forecast {
      series: { predicted_usd: number }[];
    }
    const { series } = await org.data<Forecast>('GET', '/v1/cost/forecast?days=30');
    const sum = series.reduce((all, { predicted_usd }) => all + predicted_usd, 0);
    await page.getByText(`are expected to cost ${dollars(sum)}`).waitFor();
    await page.getByText('stays below the hard limit of 1M tokens').waitFor();
    hands.expectAtMost({ clicks: 1, keys: 0 });
    await page.getByRole('link', { name: 'Show the forecast and the limits' }).click();
    const picture = page.getByRole('slider', { name: /^Tokens since the start of the period\. / });
    await picture.waitFor();
    expect(await picture.getAttribute('aria-label')).toMatch(/hard limit of 1M\stokens/);
    expectNoFaults(page);
  });

  it('is stopped for an agent with three clicks, after showing what the limit would have refused', async () => {
    const org = await spent();
    const page = await org.open('admin', '');
    await settled(page);
    const hands = new Hands(page);
    await hands.click(page.getByRole('link', { name: 'Costs', exact: true }));
    await hands.click(page.getByRole('tab', { name: 'Budgets' }));
    await hands.click(page.getByRole('button', { name: 'Set limit of planner' }));
    const dialog = page.getByRole('dialog');
    await hands.type('1000');
    await dialog.getByText('Hard limit of 1,000').waitFor();
    await dialog.getByText('Use has already reached this limit').waitFor();
    await hands.press('Enter');
    await dialog.waitFor({ state: 'hidden' });
    hands.expectAtMost({ clicks: 3, keys: 1 });
    interface Limit {
      agent_id: string;
      tokens: { hard_limit: number | null };
    }
    expect(await org.data<Limit[]>('GET', `/orgs/${org.org_id}/budget/agents`)).toMatchObject([
      { agent_id: 'planner', tokens: { hard_limit: 1000 } },
    ]);
    expectNoFaults(page);
  });
});

it('everything above is reached from the first page by a link or a key', async () => {
  const page = await openPage({ at: '~/' });
  await settled(page);
  for (const [key, path] of [
    ['t', '/traces'],
    ['j', '/judges'],
    ['c', '/costs'],
    ['e', '/evals'],
    ['d', '/datasets'],
    ['p', '/prompts'],
    ['n', '/annotate'],
  ] as const) {
    await pressSequence(page, 'g', key);
    await page.waitForURL((url) => url.pathname === orgPath(path));
    await settled(page);
  }
  expectNoFaults(page);
});
