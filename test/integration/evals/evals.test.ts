// Evals of stored traces: a real API, a real worker, the real engine.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readScoreStats } from '../../../sql/stores/judge_scores.ts';
import { startEvalWorker, type TestEvalWorker } from '../../support/evals.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { toldEvents } from '../../support/told.ts';
import { eventually } from '../../support/wait.ts';
import { asUser, call, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';
import { type EvalShown, landTraces, makeJudge, makeOrg, type TestOrg } from './an_eval.ts';

let nats: TestNats;
let store: TestStore;
let api: TestApi;
let worker: TestEvalWorker;
let org: TestOrg;
/** Names of the queries that ClickHouse has answered for the API. */
let queries: string[] = [];

beforeAll(async () => {
  [nats, store] = await Promise.all([startTestNats(), openTestStore()]);
  const observeQuery = (name: string) => queries.push(name);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url, observeQuery });
  worker = await startEvalWorker({ natsUrl: nats.url, clickhouseUrl: store.database.url });
});

afterAll(async () => {
  await worker.stop();
  await api.close();
  await nats.remove();
  await store.close();
});

beforeEach(async () => {
  org = await makeOrg(api);
});

const post = (path: string, body: unknown) => call(api, 'POST', path, { headers: org.headers, body });
const codeOf = async (path: string, body: unknown) => {
  const { status, json } = await post(path, body);
  return { status, code: json?.['code'], detail: json?.['detail'] };
};
/** Length of the reason of every judgement, in characters. */
const REASON_CHARS = 3000;
/** Returns a response for each trace, which scores 1 or 0 as given. */
const responses = (...ok: number[]) => ok.map((yes) => ({ response: yes === 1 ? 'all ok' : 'no luck' }));

test('a synchronous request answers with the final eval and exact numbers', async () => {
  const ids = await landTraces(store, org.org, responses(1, 0, 1, 1, 0));
  const judge_id = await makeJudge(org);
  const eval_ = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: [...ids, ids[0]] });
  expect(eval_).toMatchObject({
    judge_id,
    judge_version: 1,
    status: 'complete',
    queued_traces: 5,
    progress: { done: 5, total: 5 },
    stats: { total: 5, passed: 3, warned: 0, failed: 2, errors: 0, mean_score: 3 / 5, p50_score: 1 },
    error: null,
  });
  expect(eval_.eval_id).toMatch(/^eval_[0-9a-f]{16}$/);
  expect(Date.parse(eval_.ended_at ?? '')).toBeGreaterThanOrEqual(Date.parse(eval_.started_at));
  const scores = await org.scores(eval_.eval_id);
  expect(new Set(scores.map(({ trace_id }) => trace_id))).toEqual(new Set(ids));
  expect(Object.fromEntries(scores.map(({ trace_id, score }) => [trace_id, score]))).toEqual(
    Object.fromEntries(ids.map((id, i) => [id, [1, 0, 1, 1, 0][i]])),
  );
  for (const line of scores)
    expect(Object.keys(line).sort()).toEqual([
      'eval_id',
      'judge_id',
      'judge_version',
      'reason',
      'score',
      'scored_at',
      'trace_id',
      'verdict',
    ]);
  expect((await org.scores(eval_.eval_id, '?verdict=fail')).map(({ verdict }) => verdict)).toEqual(['fail', 'fail']);
  expect(await org.scores(eval_.eval_id, '?verdict=warn,error')).toEqual([]);
});

test('an async request answers at once and can be polled; a list contains the eval', async () => {
  const ids = await landTraces(
    store,
    org.org,
    Array.from({ length: 350 }, (_, i) => ({ response: i % 7 === 0 ? 'ok' : 'no' })),
  );
  const judge_id = await makeJudge(org);
  const begun = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids, async: true });
  expect(begun).toMatchObject({ judge_id, queued_traces: 350, status: 'running', stats: null, ended_at: null });
  const ended = await org.ended(begun.eval_id);
  expect(ended).toMatchObject({
    status: 'complete',
    progress: { done: 350, total: 350 },
    stats: { total: 350, passed: 50, failed: 300, mean_score: 50 / 350, p50_score: 0 },
  });
  expect(
    (await org.get<EvalShown[]>(`/v1/evals?judge_id=${judge_id}&status=complete`)).map(({ eval_id }) => eval_id),
  ).toEqual([begun.eval_id]);
  expect(await org.get<EvalShown[]>('/v1/evals?status=failed')).toEqual([]);
});

test('a sample takes at most its number of traces, none from before since, and the same ones when repeated', async () => {
  const now = Date.now();
  const at = (minutes: number) => ({ response: 'ok', started_at: now - minutes * 60_000 });
  const old = await landTraces(
    store,
    org.org,
    Array.from({ length: 20 }, () => at(600)),
  );
  const fresh = await landTraces(
    store,
    org.org,
    Array.from({ length: 30 }, (_, i) => at(i)),
  );
  const judge_id = await makeJudge(org);
  const sampled = async (sample: Record<string, unknown>) => {
    const { eval_id, queued_traces } = await org.post<EvalShown>('/v1/evals', { judge_id, sample });
    const ids = (await org.scores(eval_id)).map(({ trace_id }) => trace_id);
    expect(ids).toHaveLength(queued_traces);
    return ids;
  };
  expect(new Set(await sampled({ limit: 500, since: new Date(now - 3_600_000).toISOString() }))).toEqual(
    new Set(fresh),
  );
  expect(new Set(await sampled({ limit: 500 }))).toEqual(new Set([...old, ...fresh]));
  const some = await sampled({ limit: 10 });
  expect(some).toHaveLength(10);
  expect(new Set(await sampled({ limit: 10 }))).toEqual(new Set(some));
  const none = await org.post<EvalShown>('/v1/evals', {
    judge_id,
    sample: { limit: 5, since: new Date(now + 3_600_000).toISOString() },
  });
  expect(none).toMatchObject({
    status: 'complete',
    queued_traces: 0,
    stats: { total: 0, mean_score: null, p50_score: null },
  });
});

test('an invalid eval is rejected naming the field', async () => {
  const [own = ''] = await landTraces(store, org.org, responses(1));
  const other = await makeOrg(api);
  const [foreign = ''] = await landTraces(store, other.org, responses(1));
  const judge_id = await makeJudge(org);
  const llm = await makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'm',
    prompt_template: '{{response}}',
    rubric: { scale: [1, 5], criteria: ['good'] },
  });
  expect(await codeOf('/v1/evals', { judge_id: 'judge_none', trace_ids: [own] })).toMatchObject({
    status: 404,
    code: 'judge_not_found',
  });
  expect(await codeOf('/v1/evals', { judge_id, trace_ids: [own, 'trc_none'] })).toMatchObject({
    status: 404,
    code: 'trace_not_found',
  });
  expect(await codeOf('/v1/evals', { judge_id, trace_ids: [own, foreign] })).toMatchObject({
    status: 403,
    code: 'cross_org_access',
  });
  for (const body of [
    { judge_id },
    { judge_id, trace_ids: [own], sample: { limit: 1 } },
    { judge_id, trace_ids: [] },
    { judge_id, sample: {} },
    { judge_id, sample: { limit: 0 } },
    { judge_id, sample: { limit: 100_001 } },
    { judge_id, sample: { limit: 1, since: 'yesterday' } },
    { judge_id, trace_ids: [own], async: 'yes' },
    { trace_ids: [own] },
  ])
    expect(await codeOf('/v1/evals', body)).toMatchObject({
      status: 422,
      code: 'invalid_request',
      detail: expect.stringMatching(/^(trace_ids|sample|async|judge_id)/) as string,
    });
  // The API of this file has no upstream.
  expect(await codeOf('/v1/evals', { judge_id: llm, trace_ids: [own] })).toMatchObject({
    status: 502,
    code: 'upstream_unavailable',
    detail: expect.stringMatching(/SERVICE_LLM_BASE_URL/) as string,
  });
  const { eval_id } = await other.post<EvalShown>('/v1/evals', {
    judge_id: await makeJudge(other),
    trace_ids: [foreign],
  });
  for (const path of [`/v1/evals/${eval_id}`, `/v1/evals/${eval_id}/scores`, '/v1/evals/eval_none'])
    expect((await call(api, 'GET', path, { headers: org.headers })).json).toMatchObject({ code: 'eval_not_found' });
});

test('an eval waits for an acknowledged trace that is still landing', async () => {
  const judge_id = await makeJudge(org);
  queries = [];
  const asked = org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ['trc_landing'] });
  await eventually(() => queries.includes('eval_known_traces'), { what: 'a look that finds nothing' });
  await landTraces(store, org.org, [{ response: 'all ok', trace_id: 'trc_landing' }]);
  expect(await asked).toMatchObject({ status: 'complete', queued_traces: 1, stats: { total: 1, passed: 1 } });
});

test('a used-up quota is reported before a missing upstream', async () => {
  const llm = await makeJudge(org, {
    kind: 'llm',
    rule: undefined,
    model: 'm',
    prompt_template: '{{response}}',
    rubric: { scale: [1, 5], criteria: ['good'] },
  });
  const [own = ''] = await landTraces(store, org.org, responses(1));
  const owner = asUser(await tokenOf({ sub: `u_${org.org}` }), org.org);
  const policy = await call(api, 'PUT', `/orgs/${org.org}/policy`, { headers: owner, body: { judge_quota_calls: 0 } });
  expect(policy.status).toBe(200);
  await eventually(
    async () => (await codeOf('/v1/evals', { judge_id: llm, trace_ids: [own] })).code === 'judge_quota_exceeded',
  );
});

test('a mean that drops by the threshold is reported once, with both means', async () => {
  const good = await landTraces(store, org.org, responses(1, 1, 1, 0));
  const poor = await landTraces(store, org.org, responses(1, 0, 0, 0));
  const judge_id = await makeJudge(org);
  const run = async (trace_ids: string[]) => org.post<EvalShown>('/v1/evals', { judge_id, trace_ids });
  await run(good);
  await run(good);
  const dropped = await run(poor);
  await run(good);
  await eventually(async () => (await told()).length > 0, { what: 'an event' });
  expect((await told()).map(({ event_id, payload }) => [event_id, JSON.parse(payload) as unknown])).toEqual([
    [
      `evt_${dropped.eval_id.slice(5)}`,
      { event: 'judge.regression', judge_id, previous_mean: 0.75, current_mean: 0.25, drop: 0.5, threshold: 0.5 },
    ],
  ]);
});

/** Returns the judge.regression events of the organization so far. */
const told = async () => (await toldEvents(api.log, org.org)).filter(({ event }) => event === 'judge.regression');

test('two evals are compared trace by trace', async () => {
  const [a = '', b = '', c = '', d = ''] = await landTraces(store, org.org, responses(1, 0, 1, 0));
  const judge_id = await makeJudge(org);
  const baseline = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: [a, b, c] });
  const changed = await call(api, 'PATCH', `/v1/judges/${judge_id}`, {
    headers: org.headers,
    body: { rule: { type: 'contains', value: 'luck' } },
  });
  expect(changed.status).toBe(200);
  const candidate = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: [a, b, d] });
  expect(candidate.judge_version).toBe(2);
  const path = `/v1/evals/compare?baseline=${baseline.eval_id}&candidate=${candidate.eval_id}`;
  const { json } = await call(api, 'GET', path, { headers: org.headers });
  const data = json?.['data'] as { items: { trace_id: string }[] };
  expect(data).toMatchObject({
    baseline: { eval_id: baseline.eval_id },
    candidate: { eval_id: candidate.eval_id },
    improved: 1,
    regressed: 1,
    unchanged: 0,
    incomparable: 2,
  });
  expect(json?.['meta']).toMatchObject({ total: 4, page: 1, has_more: false });
  const byTrace = Object.fromEntries(data.items.map((item) => [item.trace_id, item]));
  expect(byTrace[a]).toMatchObject({
    baseline_score: 1,
    candidate_score: 0,
    delta: -1,
    baseline_verdict: 'pass',
    candidate_verdict: 'fail',
  });
  expect(byTrace[b]).toMatchObject({ baseline_score: 0, candidate_score: 1, delta: 1 });
  expect(byTrace[c]).toMatchObject({ baseline_score: 1, candidate_score: null, delta: null, candidate_verdict: null });
  expect(byTrace[d]).toMatchObject({ baseline_score: null, candidate_score: 1, delta: null, baseline_verdict: null });
  const second = await org.get<{ items: { trace_id: string }[] }>(`${path}&limit=1&offset=1`);
  expect(second.items.map(({ trace_id }) => trace_id)).toEqual([data.items[1]?.trace_id]);
  const stranger = await org.post<EvalShown>('/v1/evals', { judge_id: await makeJudge(org), trace_ids: [a] });
  for (const [query, code] of [
    [`baseline=${baseline.eval_id}&candidate=${stranger.eval_id}`, 'invalid_request'],
    [`baseline=${baseline.eval_id}&candidate=${baseline.eval_id}`, 'invalid_request'],
    [`baseline=${baseline.eval_id}&candidate=eval_none`, 'eval_not_found'],
    [`baseline=${baseline.eval_id}`, 'invalid_request'],
  ])
    expect((await call(api, 'GET', `/v1/evals/compare?${String(query)}`, { headers: org.headers })).json).toMatchObject(
      { code },
    );
});

test('a comparison gives the interval of the mean difference, and filters and sorts its items', async () => {
  const ids = await landTraces(store, org.org, responses(0, 0, 0, 0, 0, 1, 1, 1));
  const judge_id = await makeJudge(org);
  const baseline = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids });
  const rule = { type: 'regex_present', pattern: 'ok|luck' };
  await call(api, 'PATCH', `/v1/judges/${judge_id}`, { headers: org.headers, body: { rule } });
  const candidate = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids });
  const compared = async (query: string) => {
    const path = `/v1/evals/compare?baseline=${baseline.eval_id}&candidate=${candidate.eval_id}${query}`;
    const { status, json, text } = await call(api, 'GET', path, { headers: org.headers });
    expect([status, text]).toEqual([200, text]);
    return json as {
      data: { difference: Record<string, number>; items: Record<string, unknown>[] };
      meta: { total: number };
    };
  };
  const { data } = await compared('&sort=delta');
  // Five of eight items gained 1: mean 0.625, sample deviation 0.517549, t(0.975, 7) = 2.364624.
  expect(data.difference).toMatchObject({ pairs: 8, mean: 0.625, is_beyond_chance: true });
  expect(data.difference['half_width']).toBeCloseTo((2.3646243 * Math.sqrt(0.26785714)) / Math.sqrt(8), 6);
  expect(data.items.map(({ change }) => change)).toEqual([
    ...Array.from({ length: 5 }, () => 'improved'),
    ...Array.from({ length: 3 }, () => 'unchanged'),
  ]);
  expect(data.items[0]).toMatchObject({ baseline_verdict: 'fail', candidate_verdict: 'pass' });
  expect(data.items[0]?.['baseline_reason']).toContain('the value is not in');
  expect((await compared('&change=unchanged,regressed')).meta.total).toBe(3);
  expect((await compared('&baseline_verdict=fail&limit=2')).meta.total).toBe(5);
  expect((await compared('&candidate_verdict=fail')).data).toMatchObject({ items: [], improved: 5, unchanged: 3 });
});

test('a hundred thousand scores are streamed no faster than they are read, and with an exact median', async () => {
  const rows = 100_000;
  const judge_id = await makeJudge(org);
  const { eval_id } = await org.post<EvalShown>('/v1/evals', { judge_id, sample: { limit: 1 } });
  // The scores are k / rows for each k below rows, in shuffled order.
  await store.database
    .run(`INSERT INTO judge_scores (org_id, judge_id, judge_version, judge_name, eval_id, trace_id, started_at, item_index, score, verdict, reason, scored_at)
    SELECT '${org.org}', '${judge_id}', 1, 'n', '${eval_id}', concat('trc_', leftPad(toString(number), 6, '0')), now64(3), 0, ((number * 7919) % ${rows}) / ${rows},
      'pass', repeat('x', ${REASON_CHARS}), now64(3) FROM numbers(${rows})`);
  const [stats] = await readScoreStats(store.client, { org_id: org.org, judge_id, eval_id });
  expect(stats).toMatchObject({ total: rows, passed: rows, p50_score: (49_999 / rows + 50_000 / rows) / 2 });
  expect(stats?.mean_score).toBeCloseTo((rows - 1) / 2 / rows, 12);
  const response = await fetch(`${api.url}/v1/evals/${eval_id}/scores`, { headers: present(org.headers) });
  if (response.body === null) throw new Error('no body');
  let lines = 0;
  let sum = 0;
  let rest = '';
  const before = process.memoryUsage.rss();
  let most = 0;
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    const parts = (rest + piece).split('\n');
    rest = parts.pop() ?? '';
    for (const line of parts) {
      lines++;
      sum += (JSON.parse(line) as { score: number }).score;
    }
    most = Math.max(most, process.memoryUsage.rss() - before);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(rest).toBe('');
  expect(lines).toBe(rows);
  expect(sum).toBeCloseTo((rows - 1) / 2, 3);
  // The lines are more than 300 MB in total, and both ends of the stream are in this process.
  expect(most).toBeLessThan(150 * 1024 * 1024);
});

const present = (headers: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(headers).filter((entry): entry is [string, string] => entry[1] !== undefined));
