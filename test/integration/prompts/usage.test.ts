// The usage of a prompt by version, over rows that the pipeline's own statements landed, compared
// with sums that the test computes and that SQL gives.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listCalls, showUsage } from '../../../api/control/prompts/usage.ts';
import { picoToUsd } from '../../../pipeline/domain/pricing/money.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, seeded, type TestStore } from '../../support/store.ts';
import { makeKey, makeMember, makeOtherOrg, asKey } from '../api/a_cast.ts';
import { asUser, call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

const DAY_MS = 86_400_000;
const NOW = Date.parse('2026-03-10T09:00:00Z');
const NAME = 'support/answer';
const signal = new AbortController().signal;
const random = seeded(11);
const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;

let nats: TestNats;
let store: TestStore;
let api: TestApi;
let spans: Span[];

/** Returns calls of 40 days: three versions, another prompt, another organization, spans that are no calls. */
function someCalls(): Span[] {
  return Array.from({ length: 600 }, (_, n) => {
    const started_at = NOW - Math.floor(random() * 40 * DAY_MS);
    return aSpan({
      org_id: n % 11 === 0 ? 'org_stranger' : ORG,
      trace_id: `run_${n % 200}`,
      started_at,
      ended_at: started_at + Math.floor(random() * 5000),
      received_at: NOW,
      kind: n % 13 === 0 ? 'tool' : 'llm',
      outcome: pick(['success', 'success', 'success', 'error', 'timeout'] as const),
      prompt_name: n % 7 === 0 ? 'another' : NAME,
      prompt_version: pick(['', '1', '2', 'beta']),
      input_tokens: Math.floor(random() * 1000),
      output_tokens: Math.floor(random() * 100),
      cost_pico_usd: BigInt(Math.floor(random() * 1e9)) * 1001n,
    });
  });
}

beforeAll(async () => {
  [nats, store] = await Promise.all([startTestNats(), openTestStore()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  spans = someCalls();
  await store.landSpans(spans);
});
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

const read = (days: number, name = NAME, org_id = ORG) =>
  showUsage({ clickhouse: store.client, now: () => NOW }, { org_id, name, days }, signal);
const callsOf = (days: number, version?: string): Span[] =>
  spans.filter(
    (span) =>
      span.org_id === ORG &&
      span.kind === 'llm' &&
      span.prompt_name === NAME &&
      span.started_at >= NOW - days * DAY_MS &&
      (version === undefined || span.prompt_version === version),
  );
const figuresOf = (calls: readonly Span[]) => ({
  calls: calls.length,
  failed_calls: calls.filter(({ outcome }) => outcome !== 'success').length,
  cost_usd: picoToUsd(calls.reduce((sum, { cost_pico_usd }) => sum + cost_pico_usd, 0n)),
  input_tokens: calls.reduce((sum, { input_tokens }) => sum + input_tokens, 0),
  output_tokens: calls.reduce((sum, { output_tokens }) => sum + output_tokens, 0),
  first_seen: new Date(Math.min(...calls.map(({ started_at }) => started_at))).toISOString(),
  last_seen: new Date(Math.max(...calls.map(({ started_at }) => started_at))).toISOString(),
});

describe('the usage of a prompt', () => {
  it.each([1, 7, 30])('counts the calls of each version in the last %i days, and of all', async (days) => {
    const { data, meta } = await read(days);
    const all = callsOf(days);
    expect(data).toMatchObject({
      name: NAME,
      since: new Date(NOW - days * DAY_MS).toISOString(),
      until: new Date(NOW).toISOString(),
      ...figuresOf(all),
    });
    expect(data.error_rate).toBeCloseTo(data.failed_calls / data.calls, 12);
    expect(new Set(data.versions.map(({ version }) => version))).toEqual(
      new Set(all.map(({ prompt_version }) => (prompt_version === '' ? null : prompt_version))),
    );
    for (const { version, ...figures } of data.versions)
      expect([version, figures]).toMatchObject([version, figuresOf(callsOf(days, version ?? ''))]);
    expect(meta).toEqual({ total: data.versions.length, truncated: false });
    const seen = data.versions.map(({ last_seen }) => last_seen ?? '');
    expect(seen).toEqual(seen.toSorted().reverse());
  });

  it('gives the median and the 95th percentile of the durations that SQL gives', async () => {
    const { data } = await read(30);
    const [row] = await store.client.rows<{ q: number[] }>({
      name: 'expected',
      sql: `SELECT quantilesExact(0.5, 0.95)(dateDiff('millisecond', started_at, ended_at)) AS q FROM spans
        WHERE org_id = '${ORG}' AND prompt_name = '${NAME}' AND kind = 'llm' AND prompt_version = 'beta'
        AND started_at >= fromUnixTimestamp64Milli(${NOW - 30 * DAY_MS}, 'UTC')`,
      params: {},
      timeoutMs: 10_000,
    });
    const beta = data.versions.find(({ version }) => version === 'beta');
    const [median = 0, p95 = 0] = row?.q ?? [];
    expect(Math.abs((beta?.p50_duration_ms ?? 0) - median)).toBeLessThan(150);
    expect(Math.abs((beta?.p95_duration_ms ?? 0) - p95)).toBeLessThan(150);
  });

  it('shows nothing for a prompt that no call named, and for another organization its own calls', async () => {
    expect((await read(90, 'unknown')).data).toMatchObject({
      calls: 0,
      versions: [],
      p50_duration_ms: null,
      scores: [],
    });
    const theirs = await read(90, NAME, 'org_stranger');
    expect(theirs.data.calls).toBe(
      spans.filter(
        ({ org_id, kind, prompt_name }) => org_id === 'org_stranger' && kind === 'llm' && prompt_name === NAME,
      ).length,
    );
  });

  it('names the field when days is out of bounds', async () => {
    for (const days of ['0', '91', 'x']) {
      const answer = await call(api, 'GET', `/v1/prompts/a/usage?days=${days}`);
      expect([answer.status, answer.json?.['detail']]).toEqual([
        422,
        expect.stringContaining('days: must be an integer between 1 and 90') as string,
      ]);
    }
  });

  it('needs the permission traces:read, and shows no call of another organization', async () => {
    const path = '/v1/prompts/support%2Fanswer/usage?days=90';
    const viewer = await makeMember(api, 'viewer');
    const key = await makeKey(api, ['prompts:read']);
    expect((await call(api, 'GET', path, { headers: asUser(viewer.token) })).status).toBe(403);
    expect((await call(api, 'GET', path, { headers: asKey(key.raw) })).status).toBe(403);
    const { key: other, org_id } = await otherOrg();
    const answer = await call(api, 'GET', path, { headers: asKey(other, org_id) });
    expect([answer.status, answer.json?.['data']]).toMatchObject([200, { calls: 0, versions: [] }]);
  });
});

async function otherOrg(): Promise<{ key: string; org_id: string }> {
  await makeOtherOrg(api);
  return { key: (await makeKey(api, ['traces:read'], 'org_other')).raw, org_id: 'org_other' };
}

describe('the scores of a prompt', () => {
  const at = (ms: number) => `fromUnixTimestamp64Milli(${ms}, 'UTC')`;
  const START = NOW - DAY_MS;
  const traced = (trace_id: string, span_id: string, prompt_version: string) =>
    aSpan({
      org_id: ORG,
      trace_id,
      span_id,
      started_at: START,
      ended_at: START + 10,
      prompt_name: 'scored',
      prompt_version,
    });

  beforeAll(async () => {
    await store.landSpans([
      traced('both', 'first', '1'),
      traced('both', 'second', '2'),
      traced('only_2', 'third', '2'),
      traced('unscored', 'fourth', '3'),
    ]);
    const user = (trace: string, span: string, name: string, number: number, id: string, created = START) =>
      `('${ORG}', '${name}', ${at(START)}, '${trace}', '${id}', '${span}', 'numeric', ${number}, ${at(created)})`;
    await store.database.run(
      `INSERT INTO user_scores (org_id, name, started_at, trace_id, score_id, span_id, data_type, number, created_at) VALUES ${[
        user('both', '', 'stars', 1, 's1'),
        user('both', '', 'stars', 5, 's2', START + 5),
        user('both', 'second', 'stars', 3, 's3'),
        user('only_2', '', 'stars', 4, 's4'),
        user('elsewhere', '', 'stars', 1, 's5'),
      ].join(', ')}`,
    );
    const judged = (trace: string, version: number, score: number, verdict: string, org = ORG) =>
      `('${org}', 'judge_1', '', '${trace}', ${version}, 'Polite', ${at(START)}, ${score}, '${verdict}', ${at(START + version)})`;
    await store.database.run(
      `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, started_at, score, verdict, scored_at) VALUES ${[
        judged('both', 1, 0, 'fail'),
        judged('both', 2, 1, 'pass'),
        judged('only_2', 2, 0.5, 'warn'),
        judged('only_2', 3, 0, 'fail', 'org_stranger'),
      ].join(', ')}`,
    );
  });

  it('count for every version that the scored trace called, each newest score once', async () => {
    const { data } = await read(7, 'scored');
    const scoresOf = (version: string) =>
      data.versions
        .find((one) => one.version === version)
        ?.scores.map(({ name, source, judge_id, count, mean, passed, warned, failed }) => [
          name,
          source,
          judge_id,
          count,
          mean,
          [passed, warned, failed],
        ]);
    expect(scoresOf('1')).toEqual([
      ['Polite', 'judge', 'judge_1', 1, 1, [1, 0, 0]],
      ['stars', 'user', null, 1, 5, [0, 0, 0]],
    ]);
    // The trace as a whole got 5, its second call 3, and the other trace 4.
    expect(scoresOf('2')).toEqual([
      ['stars', 'user', null, 3, 4, [0, 0, 0]],
      ['Polite', 'judge', 'judge_1', 2, 0.75, [1, 1, 0]],
    ]);
    expect(scoresOf('3')).toEqual([]);
    expect(data.scores).toMatchObject([
      { name: 'stars', count: 3, mean: 4 },
      { name: 'Polite', count: 2, mean: 0.75 },
    ]);
  });
});

describe('the calls of a prompt', () => {
  const sent = { question: 'Where is "it"?', nested: { a: [1, 2] } };
  const called = (n: number, prompt_variables: unknown, over: Partial<Span> = {}) =>
    aSpan({
      org_id: ORG,
      trace_id: `called_${n}`,
      span_id: `call_${n}`,
      started_at: NOW - n * 1000,
      ended_at: NOW - n * 1000 + 40,
      prompt_name: 'called',
      prompt_version: n % 2 === 0 ? '2' : '1',
      cost_pico_usd: 5_000_000n,
      attributes: prompt_variables === undefined ? {} : { prompt_variables },
      ...over,
    });
  const list = (query: { limit?: number; version?: string } = {}) =>
    listCalls(
      { clickhouse: store.client, now: () => NOW },
      { org_id: ORG, name: 'called', days: 30, limit: 10, ...query },
      signal,
    );

  beforeAll(async () => {
    await store.landSpans([
      called(3, { question: 'x'.repeat(70_000) }),
      called(1, sent),
      called(2, JSON.stringify(sent)),
      called(4, [1]),
      called(5, undefined, { outcome: 'error' }),
      called(6, sent, { org_id: 'org_stranger' }),
      called(7, sent, { started_at: NOW - 31 * DAY_MS }),
    ]);
  });

  it('come newest first, with variables that were sent as an object or as its JSON', async () => {
    const calls = await list();
    expect(calls.map(({ span_id }) => span_id)).toEqual(['call_1', 'call_2', 'call_3', 'call_4', 'call_5']);
    expect(calls.map(({ variables }) => variables)).toEqual([sent, sent, null, null, null]);
    expect(calls[0]).toEqual({
      trace_id: 'called_1',
      span_id: 'call_1',
      version: '1',
      model: 'gpt-4o',
      outcome: 'success',
      started_at: new Date(NOW - 1000).toISOString(),
      duration_ms: 40,
      cost_usd: 0.000005,
      variables: sent,
    });
  });

  it('are those of one version, and no more than the limit', async () => {
    expect((await list({ version: '2' })).map(({ span_id }) => span_id)).toEqual(['call_2', 'call_4']);
    expect((await list({ limit: 1 })).map(({ span_id }) => span_id)).toEqual(['call_1']);
    const refused = await call(api, 'GET', '/v1/prompts/called/calls?limit=51');
    expect([refused.status, refused.json?.['detail']]).toEqual([
      422,
      expect.stringContaining('limit: must be an integer between 1 and 50') as string,
    ]);
    const over = await call(api, 'GET', '/v1/prompts/called/calls');
    expect(over.status).toBe(200);
  });
});
