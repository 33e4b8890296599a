// Previews of judges: a real API, a real worker, the real engine and an upstream of the test's own.
// A preview says what an eval of the same judge says, and stores nothing.
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { startWorker, type TestWorker } from '../../support/pipeline.ts';
import { createTestDatabase, type TestDatabase } from '../../support/clickhouse.ts';
import { score, startUpstream, type TestUpstream } from '../../support/upstream.ts';
import { eventually } from '../../support/wait.ts';
import { call, startTestApi, type TestApi } from '../api/an_api.ts';
import { type EvalShown, makeJudge, makeOrg, type TestOrg } from '../evals/an_eval.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

let nats: TestNats;
let database: TestDatabase;
let upstream: TestUpstream;
let api: TestApi;
let worker: TestWorker;
let org: TestOrg;

const start = async (): Promise<void> => {
  worker = startWorker({
    natsUrl: nats.url,
    clickhouseUrl: database.url,
    more: { SERVICE_LLM_BASE_URL: upstream.url, SERVICE_TRACE_GRACE_MS: '50' },
  });
  await worker.ready;
};
const kill = async (): Promise<void> => {
  worker.kill('SIGKILL');
  await worker.exited;
};

beforeAll(async () => {
  [nats, database, upstream] = await Promise.all([startTestNats(), createTestDatabase(), startUpstream()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: database.url, llmUrl: upstream.url });
  await start();
});
afterAll(async () => {
  await kill();
  await api.close();
  await upstream.close();
  await nats.remove();
  await database.drop();
});
beforeEach(async () => {
  org = await makeOrg(api);
});

interface Preview {
  dry: boolean;
  verdicts: { trace_id: string; in_scope: boolean; score: number | null; verdict: string; reason: string }[];
  found: number;
  calls: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number | null;
  quota: { limit: number | null; used: number } | null;
}

const RULE = {
  name: 'says ok',
  kind: 'deterministic',
  rule: { type: 'contains', value: 'ok' },
  threshold: { pass: 1 },
};
const LLM = {
  name: 'helpful',
  kind: 'llm',
  prompt_template: 'Rate {{response}} by {{criteria}} on {{scale}}.',
  model: 'gpt-4o',
  rubric: { scale: [1, 3, 5], criteria: ['helpful'] },
  threshold: { pass: 5, warn: 3 },
};
const preview = (draft: unknown, trace_ids: readonly string[], more: Record<string, unknown> = {}) =>
  org.post<Preview>('/v1/judges/preview', { draft, trace_ids, ...more });
const refused = async (body: unknown) => {
  const { status, json } = await call(api, 'POST', '/v1/judges/preview', { headers: org.headers, body });
  return { status, code: json?.['code'], detail: String(json?.['detail']) };
};
/** Sends traces of one call each, and resolves with their ids once they are stored. */
async function sent(to: TestOrg, responses: readonly string[]): Promise<string[]> {
  const events = responses.map((response, serial) => ({
    name: 'call',
    outcome: 'success',
    duration_ms: 40,
    attributes: { serial, prompt: 'a question', response },
  }));
  const { events: stored } = await to.post<{ events: { trace_id: string }[] }>(`/orgs/${to.org}/ingest/custom`, {
    events,
  });
  const ids = stored.map(({ trace_id }) => trace_id);
  const traces = async () => (await to.get<{ trace_id: string }[]>('/v1/traces?limit=200')).map((one) => one.trace_id);
  await eventually(async () => new Set(await traces()).isSupersetOf(new Set(ids)), { what: 'the stored traces' });
  return ids;
}
const three = () => sent(org, ['all ok', 'no luck', 'ok']);
const scoresStored = async (): Promise<number> =>
  Number(await database.run(`SELECT count() FROM judge_scores WHERE org_id = '${org.org}'`));

test('a preview of a rule says what an eval of the same judge says, in the order of the ids, and stores nothing', async () => {
  const ids = (await three()).toReversed();
  const previewed = await preview(RULE, ids);
  expect(previewed).toMatchObject({ dry: false, found: 3, calls: 0, cost_usd: 0, quota: null });
  expect(previewed.verdicts.map(({ trace_id }) => trace_id)).toEqual(ids);
  expect(await scoresStored()).toBe(0);
  expect(await org.get<unknown[]>('/v1/judges')).toEqual([]);
  const judge_id = await makeJudge(org, RULE);
  const { eval_id } = await org.post<EvalShown>('/v1/evals', { judge_id, trace_ids: ids });
  const byTrace = new Map((await org.scores(eval_id)).map((line) => [line.trace_id, line]));
  for (const { trace_id, ...said } of previewed.verdicts) {
    const { score: value, verdict, reason } = byTrace.get(trace_id) ?? { score: null, verdict: '', reason: '' };
    expect(said).toEqual({ in_scope: true, score: value, verdict, reason });
  }
  expect(previewed.verdicts.map(({ verdict }) => verdict)).toEqual(['pass', 'fail', 'pass']);
});

test('a preview leaves out unknown traces and those of other organizations, and says which are out of scope', async () => {
  const ids = await three();
  const other = await makeOrg(api);
  const foreign = await sent(other, ['ok']);
  const { found, verdicts } = await preview({ ...RULE, scope: { agent_id: ['nobody'] } }, [
    ...foreign,
    'trc_none',
    ...ids.slice(0, 1),
    ...ids.slice(0, 1),
  ]);
  expect(found).toBe(1);
  expect(verdicts).toEqual([expect.objectContaining({ trace_id: ids[0], in_scope: false, verdict: 'pass' })]);
});

test('a rule that runs in its own thread with a deadline judges in a preview too', async () => {
  const ids = await three();
  // A schema of this size does not run in the worker's own thread.
  const schema = {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 200 }, (_, n) => [`p${n}`, {}])),
  };
  const { verdicts } = await preview({ ...RULE, rule: { type: 'json_schema', schema } }, ids);
  expect(verdicts.map(({ verdict, reason }) => [verdict, reason.includes('is no JSON')])).toEqual([
    ['fail', true],
    ['fail', true],
    ['fail', true],
  ]);
});

test.each<[string, unknown]>([
  ['draft.rule.pattern', { draft: { ...RULE, rule: { type: 'regex_absent', pattern: '[' } }, trace_ids: ['a'] }],
  ['draft.threshold.pass', { draft: { ...RULE, threshold: { pass: 2 } }, trace_ids: ['a'] }],
  ['draft.model', { draft: { ...RULE, model: 'm' }, trace_ids: ['a'] }],
  ['trace_ids', { draft: RULE, trace_ids: [] }],
  ['trace_ids', { draft: RULE, trace_ids: Array.from({ length: 21 }, (_, n) => `t${n}`) }],
  ['dry', { draft: RULE, trace_ids: ['a'], dry: 'yes' }],
])('a preview is rejected for its %s, which the answer names', async (field, body) => {
  const { status, code, detail } = await refused(body);
  expect([status, code]).toEqual([422, 'invalid_request']);
  expect(detail.startsWith(field)).toBe(true);
});

test('a dry preview of an LLM judge prices its calls and makes none', async () => {
  const ids = await three();
  const before = upstream.requests.length;
  const dry = await preview(LLM, ids, { dry: true });
  expect(dry).toMatchObject({ dry: true, verdicts: [], found: 3, calls: 3, quota: { limit: null, used: 0 } });
  expect(dry.input_tokens).toBeGreaterThan(150);
  // gpt-4o costs 2.50 USD per million input tokens and 10 USD per million output tokens.
  expect(dry.cost_usd).toBeCloseTo((dry.input_tokens * 2.5 + dry.output_tokens * 10) / 1e6, 12);
  expect((await preview({ ...LLM, model: 'a-model-without-a-price' }, ids, { dry: true })).cost_usd).toBeNull();
  expect(upstream.requests.length).toBe(before);
});

test('a preview of an LLM judge counts in the quota, is traced with its cost and stores no score', async () => {
  const ids = await three();
  upstream.behave(score(5, 'because it helps'), score(3), score(1));
  const { verdicts, calls, quota, input_tokens } = await preview(LLM, ids);
  expect(verdicts.map(({ verdict }) => verdict).sort()).toEqual(['fail', 'pass', 'warn']);
  expect({ calls, quota, input_tokens }).toEqual({ calls: 3, quota: { limit: null, used: 3 }, input_tokens: 300 });
  const spans = `SELECT count() FROM spans WHERE org_id = '${org.org}' AND model = 'gpt-4o' AND cost_usd > 0`;
  await eventually(async () => Number(await database.run(spans)) === 3, { what: 'the spans of the calls' });
  expect(await scoresStored()).toBe(0);
  const policy = await call(api, 'PUT', `/orgs/${org.org}/policy`, {
    headers: org.owner,
    body: { judge_quota_calls: 4 },
  });
  expect(policy.status).toBe(200);
  const last = await preview(LLM, ids);
  expect(last.quota).toEqual({ limit: 4, used: 4 });
  expect(last.verdicts.filter(({ verdict }) => verdict === 'error').map(({ reason }) => reason)).toEqual([
    'the quota of 4 calls of LLM judges in this period is used up',
    'the quota of 4 calls of LLM judges in this period is used up',
  ]);
  expect(await refused({ draft: LLM, trace_ids: ids })).toMatchObject({ status: 429, code: 'judge_quota_exceeded' });
});

test('when the caller leaves, the worker ends the model calls of the preview', async () => {
  const ids = await three();
  upstream.behave(() => undefined);
  const left = new AbortController();
  const headers = new Headers({ 'content-type': 'application/json' });
  for (const [name, value] of Object.entries(org.headers)) if (value !== undefined) headers.set(name, value);
  const answer = fetch(`${api.url}/v1/judges/preview`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ draft: LLM, trace_ids: ids }),
    signal: left.signal,
  }).catch(() => null);
  await eventually(() => Promise.resolve(upstream.open > 0), { what: 'a model call' });
  left.abort();
  await answer;
  await eventually(() => Promise.resolve(upstream.open === 0), { what: 'the end of the model calls' });
});

test('a preview fails with 502 when its worker is killed or none is there, and works again with the next worker', async () => {
  const ids = await three();
  upstream.behave(() => undefined);
  const cut = refused({ draft: LLM, trace_ids: ids });
  await eventually(() => Promise.resolve(upstream.open > 0), { what: 'a model call' });
  await kill();
  expect(await cut).toMatchObject({ status: 502, code: 'upstream_unavailable' });
  expect(await refused({ draft: RULE, trace_ids: ids })).toMatchObject({
    status: 502,
    detail: 'No pipeline worker is available to judge. Try again.',
  });
  await start();
  expect((await preview(RULE, ids)).found).toBe(3);
});

test('the estimate of an eval multiplies the price of a sample of its traces', async () => {
  const ids = await sent(
    org,
    Array.from({ length: 40 }, () => 'all of them are alike'),
  );
  const judge_id = await makeJudge(org, { ...LLM, rule: undefined });
  const estimate = await org.post<Record<string, number>>('/v1/evals/estimate', { judge_id, trace_ids: ids });
  const twenty = await preview(LLM, ids.slice(0, 20), { dry: true });
  expect(estimate).toMatchObject({ judge_id, judge_version: 1, queued_traces: 40, calls: 40 });
  expect(estimate['input_tokens']).toBe(2 * twenty.input_tokens);
  expect(estimate['cost_usd']).toBeCloseTo(2 * (twenty.cost_usd ?? 0), 12);
  const rule = await makeJudge(org);
  expect(await org.post('/v1/evals/estimate', { judge_id: rule, sample: { limit: 30 } })).toMatchObject({
    queued_traces: 30,
    calls: 0,
    cost_usd: 0,
  });
  expect(await org.get<unknown[]>('/v1/evals')).toEqual([]);
});
