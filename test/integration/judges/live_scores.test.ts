// What judges said of live traffic, read over HTTP: scores, statistics by day and version, and the
// versions of a judge. A real API and the real engine; the scores are rows as a worker writes them.
import { afterAll, beforeAll, beforeEach, expect, it, vi } from 'vitest';
import { writeScores, type ScoreRow } from '../../../sql/stores/judge_scores.ts';
import { createClickHouse, type ClickHouse } from '../../../sql/client/client.ts';
import { type JudgeBench, openJudgeBench } from './a_judge.ts';

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const DAY_MS = 86_400_000;
let bench: JudgeBench;
let clickhouse: ClickHouse;
beforeAll(async () => {
  bench = await openJudgeBench();
  clickhouse = createClickHouse({ url: bench.database.url });
});
afterAll(async () => {
  await clickhouse.close();
  await bench.close();
});
beforeEach(() => bench.newOrg());

// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters -- the caller knows the data
const get = async <T>(path: string): Promise<{ data: T; meta: Record<string, unknown> }> => {
  const { status, json, text } = await bench.call('GET', path);
  expect([status, text]).toEqual([200, text]);
  return json as { data: T; meta: Record<string, unknown> };
};
/** Writes live scores of a judge; `days` is their age. */
const said = (judge_id: string, scores: readonly (Partial<ScoreRow> & { score: number | null; days?: number })[]) =>
  writeScores(
    clickhouse,
    scores.map(({ days = 0, ...more }, index) => ({
      org_id: bench.org(),
      judge_id,
      judge_version: 1,
      judge_name: 'a judge',
      eval_id: '',
      trace_id: `trc_${String(index).padStart(4, '0')}`,
      agent_id: 'planner',
      started_ms: Date.now() - days * DAY_MS,
      item_index: 0,
      verdict: more.score === null ? 'error' : more.score === 1 ? 'pass' : 'fail',
      reason: `reason ${index}`,
      scored_ms: Date.now() - days * DAY_MS - index * 1000,
      ...more,
    })),
  );
const aJudge = () => bench.judge({ type: 'contains', value: 'ok' });

interface LiveScore {
  trace_id: string;
  judge_version: number;
  verdict: string;
  score: number | null;
  reason: string;
}

it('live scores come newest first and page by cursor without scores of evals or of other judges', async () => {
  const [judge_id, other] = [await aJudge(), await aJudge()];
  await said(judge_id, [
    ...Array.from({ length: 25 }, (_, n) => ({ score: n % 5 === 0 ? 0 : 1 })),
    { score: 1, eval_id: 'eval_1' },
    { score: 1, days: 40 },
  ]);
  await said(other, [{ score: 0 }]);
  const seen: LiveScore[] = [];
  let cursor: unknown = null;
  do {
    const page = await get<LiveScore[]>(
      `/v1/judges/${judge_id}/scores?limit=10${typeof cursor === 'string' ? `&cursor=${cursor}` : ''}`,
    );
    expect(page.meta['total']).toBe(25);
    seen.push(...page.data);
    cursor = page.meta['next_cursor'];
  } while (cursor !== null);
  expect(seen.map(({ trace_id }) => trace_id)).toEqual(
    Array.from({ length: 25 }, (_, n) => `trc_${String(n).padStart(4, '0')}`),
  );
  const failed = await get<LiveScore[]>(`/v1/judges/${judge_id}/scores?verdict=fail,error`);
  expect(failed.data.map(({ reason }) => reason)).toEqual([
    'reason 0',
    'reason 5',
    'reason 10',
    'reason 15',
    'reason 20',
  ]);
  expect(failed.meta['total']).toBe(5);
  expect((await get<LiveScore[]>(`/v1/judges/${judge_id}/scores?days=90`)).meta['total']).toBe(26);
});

it('statistics count verdicts by day and version, and errors neither as passed nor as failed', async () => {
  const judge_id = await aJudge();
  await said(judge_id, [
    { score: 1, days: 1 },
    { score: 0, days: 1 },
    { score: null, days: 1 },
    { score: 1, days: 1, judge_version: 2 },
    { score: 1, days: 3 },
    { score: 0, days: 20 },
  ]);
  const { data } = await get<{ by_day: Record<string, unknown>[] }>(`/v1/judges/${judge_id}/stats?days=7`);
  const day = (ago: number) => new Date(Date.now() - ago * DAY_MS).toISOString().slice(0, 10);
  expect(data).toMatchObject({ total: 5, passed: 3, failed: 1, errors: 1, pass_rate: 0.75, mean_score: 0.75 });
  expect(data.by_day).toMatchObject([
    { day: day(3), judge_version: 1, total: 1, pass_rate: 1, mean_score: 1 },
    { day: day(1), judge_version: 1, total: 3, passed: 1, errors: 1, pass_rate: 0.5, mean_score: 0.5 },
    { day: day(1), judge_version: 2, total: 1, pass_rate: 1 },
  ]);
});

it('the statistics of all judges name every judge, with its last breach', async () => {
  const [silent, judge_id] = [await aJudge(), await aJudge()];
  await said(judge_id, [{ score: 1 }, { score: 0, days: 2 }, { score: 0, days: 1, trace_id: 'trc_b' }]);
  const { data } = await get<{ judge_id: string; last_breach_at: string | null }[]>('/v1/judges/stats?days=7');
  const byId = new Map(data.map((row) => [row.judge_id, row]));
  expect(byId.get(silent)).toMatchObject({ total: 0, pass_rate: null, mean_score: null, last_breach_at: null });
  expect(byId.get(judge_id)).toMatchObject({ total: 3, passed: 1, failed: 2 });
  expect(Date.parse(byId.get(judge_id)?.last_breach_at ?? '')).toBeGreaterThan(Date.now() - 1.5 * DAY_MS);
});

it('scores, statistics and versions of another organization’s judge are not found', async () => {
  const judge_id = await aJudge();
  await said(judge_id, [{ score: 0 }]);
  await bench.newOrg();
  for (const part of ['scores', 'stats', 'versions']) {
    const { status, json } = await bench.call('GET', `/v1/judges/${judge_id}/${part}`);
    expect([status, json?.['code']]).toEqual([404, 'judge_not_found']);
  }
  expect((await get<unknown[]>('/v1/judges/stats')).data).toEqual([]);
});

it.each([
  ['days', 'days=0'],
  ['days', 'days=91'],
  ['verdict', 'verdict=good'],
  ['version', 'version=0'],
  ['cursor', 'cursor=x'],
])('scores are rejected for an invalid %s', async (field, query) => {
  const { status, json } = await bench.call('GET', `/v1/judges/${await aJudge()}/scores?${query}`);
  expect([status, json?.['code']]).toEqual([422, 'invalid_request']);
  expect(String(json?.['detail']).startsWith(field)).toBe(true);
});

it('versions come newest first with their definitions, and survive kill -9 of the NATS server', async () => {
  const judge_id = await aJudge();
  for (const value of ['fine', 'good'])
    expect((await bench.call('PATCH', `/v1/judges/${judge_id}`, { rule: { type: 'contains', value } })).status).toBe(
      200,
    );
  const path = `/v1/judges/${judge_id}/versions`;
  const shown = async () =>
    (await get<{ version: number; rule: { value: string } }[]>(path)).data.map(({ version, rule }) => [
      version,
      rule.value,
    ]);
  const before = [
    [3, 'good'],
    [2, 'fine'],
    [1, 'ok'],
  ];
  expect(await shown()).toEqual(before);
  await bench.nats.kill();
  await bench.nats.start();
  await vi.waitFor(async () => {
    expect(await shown()).toEqual(before);
  }, 30_000);
  const page = await get<{ version: number }[]>(`${path}?limit=1&offset=1`);
  expect(page.data.map(({ version }) => version)).toEqual([2]);
  expect(page.meta).toMatchObject({ total: 3, has_more: true });
});
