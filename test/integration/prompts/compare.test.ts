// Comparing two traces over HTTP, with rows that the pipeline's own statements landed.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';
import { eventually } from '../../support/wait.ts';
import { OWNER } from '../api/a_cast.ts';
import { type Answer, asUser, call, ORG, startTestApi, type TestApi, tokenOf } from '../api/an_api.ts';

const AT = Date.parse('2026-02-03T04:05:06.000Z');

let nats: TestNats;
let store: TestStore;
let api: TestApi;

/** Returns the spans of an agent with two model calls. */
function run(
  trace_id: string,
  { slower = 0, cost = 1_000_000_000n, model = 'gpt-4o', response = 'done', outcome = 'success' as const } = {},
) {
  const common = { org_id: ORG, trace_id };
  return [
    aSpan({
      ...common,
      span_id: 'root',
      kind: 'event',
      name: 'agent',
      model: '',
      agent_id: 'bot',
      tags: ['b', 'a'],
      started_at: AT,
      ended_at: AT + 1000 + slower,
      prompt: '',
      response: '',
      input_tokens: 0,
      output_tokens: 0,
      cost_pico_usd: 0n,
    }),
    aSpan({
      ...common,
      parent_span_id: 'root',
      started_at: AT + 300,
      ended_at: AT + 900,
      prompt: 'second',
      response,
      model,
      cost_pico_usd: cost,
    }),
    aSpan({
      ...common,
      parent_span_id: 'root',
      started_at: AT + 100,
      ended_at: AT + 200,
      prompt: 'first',
      response: 'part',
      cost_pico_usd: cost,
      outcome,
    }),
  ];
}

beforeAll(async () => {
  nats = await startTestNats();
  store = await openTestStore();
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  await store.landSpans([
    ...run('before'),
    ...run('after', { slower: 200, cost: 1_050_000_000n, model: 'gpt-4o-mini', response: 'done well' }),
    aSpan({
      org_id: ORG,
      trace_id: 'alone',
      started_at: AT,
      ended_at: AT + 1,
      agent_id: '',
      outcome: 'error',
      cost_pico_usd: 0n,
    }),
    aSpan({ org_id: 'org_stranger', trace_id: 'theirs', started_at: AT }),
  ]);
  const score = (trace: string, judge: string, eval_id: string, version: number, value: string) =>
    `('${ORG}', '${judge}', '${eval_id}', '${trace}', ${version}, 'name of ${judge}', fromUnixTimestamp64Milli(${AT}, 'UTC'), ${value}, now64(3, 'UTC'))`;
  await store.database.run(
    'INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, started_at, score, scored_at) VALUES ' +
      [
        score('before', 'judge_1', '', 1, '0.2'),
        score('before', 'judge_1', '', 2, '0.8'),
        score('before', 'judge_2', '', 1, '0.4'),
        score('before', 'judge_3', '', 1, 'NULL'),
        score('before', 'judge_4', 'eval_1', 1, '1'),
        score('after', 'judge_1', '', 2, '1'),
      ].join(', '),
  );
});
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

const compare = (baseline: unknown, candidate: unknown, fields?: unknown) =>
  call(api, 'POST', '/v1/traces/compare', {
    body: { baseline_trace_id: baseline, candidate_trace_id: candidate, ...(fields === undefined ? {} : { fields }) },
  });
type Row = {
  field: string;
  baseline: unknown;
  candidate: unknown;
  delta: unknown;
  delta_percent: unknown;
  differs: boolean;
};
const rowsOf = ({ json }: Answer): Row[] => (json?.['data'] as { fields: Row[] }).fields;

describe('a comparison', () => {
  it('a comparison states for each field by how much the candidate differs', async () => {
    const answer = await compare('before', 'after', ['duration_ms', 'cost_usd', 'outcome', 'judge_score']);
    expect(answer.status).toBe(200);
    expect(answer.json?.['data']).toEqual({
      baseline_trace_id: 'before',
      candidate_trace_id: 'after',
      fields: [
        { field: 'duration_ms', baseline: 1000, candidate: 1200, delta: 200, delta_percent: 20, differs: true },
        { field: 'cost_usd', baseline: 0.002, candidate: 0.0021, delta: 0.0001, delta_percent: 5, differs: false },
        {
          field: 'outcome',
          baseline: 'success',
          candidate: 'success',
          delta: null,
          delta_percent: null,
          differs: false,
        },
        // The mean over the newest score of each judge, from live judging or an eval: (0.8 + 0.4 +
        // 1) / 3.
        {
          field: 'judge_score',
          baseline: 0.733333333333,
          candidate: 1,
          delta: 0.266666666667,
          delta_percent: 36.3636363637,
          differs: true,
        },
      ],
    });
  });

  it('a comparison contains all fields but the texts when none are named', async () => {
    const rows = rowsOf(await compare('before', 'after'));
    const differing = rows.filter(({ differs }) => differs).map(({ field }) => field);
    expect(differing).toEqual(['duration_ms', 'judge_score', 'models']);
    expect(rows.find(({ field }) => field === 'models')).toMatchObject({
      baseline: ['gpt-4o'],
      candidate: ['gpt-4o', 'gpt-4o-mini'],
    });
    expect(rows.find(({ field }) => field === 'tags')).toMatchObject({ baseline: ['a', 'b'] });
    expect(rows.find(({ field }) => field === 'agent_id')).toMatchObject({ baseline: 'bot', candidate: 'bot' });
    expect(rows.find(({ field }) => field === 'root_span_name')).toMatchObject({ baseline: 'agent' });
    expect(rows.find(({ field }) => field === 'spans')).toMatchObject({ baseline: 3, candidate: 3, delta: 0 });
    expect(rows.map(({ field }) => field)).not.toContain('response');
  });

  it('a comparison shows the texts that judges see on request', async () => {
    expect(rowsOf(await compare('before', 'after', ['prompt', 'response']))).toMatchObject([
      { field: 'prompt', baseline: 'first', candidate: 'first', differs: false },
      { field: 'response', baseline: 'done', candidate: 'done well', differs: true },
    ]);
  });

  it('a comparison reads one judge by its name or id', async () => {
    expect(
      rowsOf(
        await compare('before', 'after', ['judge_score.judge_2', 'judge_score.name of judge_1', 'judge_score.nobody']),
      ),
    ).toMatchObject([
      { baseline: 0.4, candidate: null, delta: null, differs: true },
      { baseline: 0.8, candidate: 1, delta: 0.2, delta_percent: 25, differs: true },
      { baseline: null, candidate: null, differs: false },
    ]);
  });

  it('a comparison has no percentage of zero', async () => {
    const rows = rowsOf(await compare('alone', 'before', ['cost_usd', 'agent_id', 'outcome']));
    expect(rows).toMatchObject([
      { baseline: 0, candidate: 0.002, delta: 0.002, delta_percent: null, differs: true },
      { baseline: null, candidate: 'bot', differs: true },
      { baseline: 'error', candidate: 'success', differs: true },
    ]);
    expect(rowsOf(await compare('alone', 'alone')).filter(({ differs }) => differs)).toEqual([]);
  });

  it("a comparison uses the policy's threshold", async () => {
    const policy = async (compare_threshold_percent: number | null) =>
      call(api, 'PUT', `/orgs/${ORG}/policy`, {
        headers: asUser(await tokenOf({ sub: OWNER })),
        body: { compare_threshold_percent },
      });
    const differs = async () =>
      rowsOf(await compare('before', 'after', ['duration_ms', 'cost_usd'])).map((row) => row.differs);
    expect((await policy(20)).status).toBe(200);
    await eventually(async () => JSON.stringify(await differs()) === '[false,false]');
    await policy(4.9);
    await eventually(async () => JSON.stringify(await differs()) === '[true,true]');
    await policy(null);
  });
});

describe('what cannot be compared', () => {
  it('an unknown trace, or one of another organization, cannot be compared, and the answer names which', async () => {
    for (const [baseline, candidate, status, code, field] of [
      ['nobody', 'after', 404, 'trace_not_found', 'baseline_trace_id'],
      ['before', 'nobody', 404, 'trace_not_found', 'candidate_trace_id'],
      ['theirs', 'after', 403, 'cross_org_access', 'baseline_trace_id'],
      ['before', 'theirs', 403, 'cross_org_access', 'candidate_trace_id'],
    ] as const) {
      const answer = await compare(baseline, candidate);
      expect([answer.status, answer.json?.['code']]).toEqual([status, code]);
      expect(answer.json?.['detail']).toContain(field);
    }
  });

  it('an unknown field cannot be compared', async () => {
    const answer = await compare('before', 'after', ['cost_usd', 'colour']);
    expect([answer.status, answer.json?.['code']]).toEqual([422, 'invalid_request']);
    expect(answer.json?.['detail']).toMatch(/^fields\[1\]: /);
    expect((await compare('before', undefined)).json?.['detail']).toMatch(/^candidate_trace_id: /);
    expect((await compare('before', 'after', 'cost_usd')).status).toBe(422);
  });
});
