// The reads of one trace, over HTTP and the real store: outline, item, span, texts and matches.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readTraceOutline } from '../../../api/telemetry/trace/outline.ts';
import { SPAN_FLAGS } from '../../../pipeline/domain/traces/span_flags.ts';
import type { Span } from '../../../pipeline/domain/traces/span.ts';
import { createClickHouse } from '../../../sql/client/client.ts';
import { startTestNats, type TestNats } from '../../support/nats.ts';
import { aSpan } from '../../support/spans.ts';
import { openTestStore, type TestStore, tracesOf } from '../../support/store.ts';
import { call, ORG, startTestApi, type TestApi } from '../api/an_api.ts';

type Fields = Record<string, unknown>;

const AT = Date.parse('2026-02-03T04:05:06.789Z');

let nats: TestNats;
let store: TestStore;
let api: TestApi;

const of = (over: Partial<Span>): Span =>
  aSpan({ org_id: ORG, trace_id: 'run', kind: 'event', model: '', prompt: '', response: '', ...over });

const RUN: Span[] = [
  of({
    span_id: 'call-2',
    parent_span_id: 'root',
    kind: 'llm',
    model: 'gpt-4o',
    name: 'gpt-4o',
    started_at: AT + 300,
    ended_at: AT + 900,
    prompt: 'book the sofa again',
    response: 'Done: the refund, and "refund" again.',
    attributes: { turn: 2 },
    first_token_ms: 120,
    prompt_name: 'booking',
  }),
  of({
    span_id: 'root',
    name: 'agent',
    started_at: AT,
    ended_at: AT + 1000,
    source_format: 'custom',
    tags: ['a', 'b'],
    agent_id: 'planner',
  }),
  of({
    span_id: 'tool-1',
    parent_span_id: 'call-2',
    kind: 'tool',
    name: 'book_flight',
    outcome: 'error',
    started_at: AT + 400,
    ended_at: AT + 700,
    attributes: { error_message: 'payment declined' },
    prompt: '{"flight":"HAT136"}',
  }),
  of({
    span_id: 'call-1',
    parent_span_id: 'root',
    kind: 'llm',
    model: 'claude',
    name: 'claude',
    outcome: 'error',
    started_at: AT + 100,
    ended_at: AT + 200,
    prompt: 'first prompt',
    response: 'overloaded',
  }),
  of({
    span_id: 'lost',
    parent_span_id: 'never-arrived',
    name: 'late',
    started_at: AT + 50,
    ended_at: AT + 60,
  }),
];
/** Statements that read failures. */
const FAILURES = ['trace_failure_texts', 'trace_failures'];
const LONG = of({
  trace_id: 'long',
  span_id: 'call',
  kind: 'llm',
  started_at: AT - 5000,
  ended_at: AT - 4000,
  prompt: 'x'.repeat(300_000),
  response: 'ok',
});

beforeAll(async () => {
  [nats, store] = await Promise.all([startTestNats(), openTestStore()]);
  api = await startTestApi({ natsUrl: nats.url, clickhouseUrl: store.database.url });
  await store.landSpans([...RUN, LONG]);
  await store.landTraces(tracesOf([...RUN, LONG]).map((state) => ({ state, version: 5, sign: 1 })));
}, 120_000);
afterAll(async () => {
  await api.close();
  await store.close();
  await nats.remove();
});

async function got(path: string): Promise<{ data: Fields; meta: Fields }> {
  const answer = await call(api, 'GET', path);
  expect([path, answer.status, answer.status === 200 ? '' : answer.text]).toEqual([path, 200, '']);
  return answer.json as never;
}

describe('outline', () => {
  it('returns every span in columns, depth first, with dictionaries of names and models', async () => {
    const { data, meta } = await got('/v1/traces/run/outline');
    const spans = data['spans'] as Record<string, unknown[]>;
    expect(meta).toMatchObject({ total: 5, truncated: false });
    expect(spans['span_id']).toEqual(['root', 'call-1', 'call-2', 'tool-1', 'lost']);
    expect(spans['parent']).toEqual([-1, 0, 0, 2, -1]);
    expect(spans['name']?.map((index) => (data['names'] as string[])[index as number])).toEqual([
      'agent',
      'claude',
      'gpt-4o',
      'book_flight',
      'late',
    ]);
    expect(spans['model']?.map((index) => (data['models'] as string[])[index as number])).toEqual([
      undefined,
      'claude',
      'gpt-4o',
      undefined,
      undefined,
    ]);
    expect(spans['kind']).toEqual(['event', 'llm', 'llm', 'tool', 'event']);
    expect(spans['outcome']).toEqual(['success', 'error', 'success', 'error', 'success']);
    expect(spans['start_ms']).toEqual([0, 100, 300, 400, 50]);
    expect(spans['duration_ms']).toEqual([1000, 100, 600, 300, 10]);
    expect(spans['first_token_ms']).toEqual([-1, -1, 120, -1, -1]);
    const { recorded, has_texts } = SPAN_FLAGS;
    const with_texts = recorded | has_texts;
    expect(spans['flags']).toEqual([recorded, with_texts, with_texts, with_texts, recorded]);
  });

  it('returns the messages of failed spans, from attributes or from the response', async () => {
    const { data } = await got('/v1/traces/run/outline');
    expect(data['errors']).toEqual([
      { i: 3, message: 'payment declined' },
      { i: 1, message: 'overloaded' },
    ]);
  });

  it.each([
    ['reads no failures of a trace that has none', 'fine', 'success', 'success', [], []],
    ['reads the failures of a trace whose row says that it failed', 'failed', 'error', 'error', ['oops'], FAILURES],
    ['reads the failures of a trace whose row is older than its span', 'old', 'error', 'success', ['oops'], FAILURES],
    [
      'reads the failures of a trace whose row has not landed',
      'new',
      'timeout',
      null,
      ['oops'],
      ['lookup', ...FAILURES],
    ],
    ['reads failures for a row that is newer than the spans', 'ahead', 'success', 'error', [], FAILURES],
  ] as const)('%s', async (_, trace_id, outcome, described, messages, reads) => {
    const span = of({ trace_id, span_id: 'only', outcome, attributes: { error_message: 'oops' } });
    await store.landSpans([span]);
    if (described !== null)
      await store.landTraces(
        tracesOf([{ ...span, outcome: described }]).map((state) => ({ state, version: 5, sign: 1 })),
      );
    const names: string[] = [];
    const clickhouse = createClickHouse({
      url: store.database.url,
      observeQuery: (name) => {
        names.push(name);
      },
    });
    const { data } = await readTraceOutline(
      {
        clickhouse,
        written: null as never,
        locate: (org_id, id) => {
          names.push('lookup');
          return Promise.resolve({ org_id, trace_id: id, from_ms: span.started_at, to_ms: span.started_at });
        },
        scoresOf: () => Promise.resolve([]),
        completeRule: { graceMs: 0, idleMs: 0 },
        now: () => AT,
      },
      ORG,
      trace_id,
      new AbortController().signal,
    );
    await clickhouse.close();
    expect(data.errors).toEqual(messages.map((message) => ({ i: 0, message })));
    expect(names.sort()).toEqual([...reads, 'trace_located', 'trace_outline']);
  });
});

it('reads flags and times from attributes where spans landed before these were columns', async () => {
  const older = [
    of({ trace_id: 'older', span_id: 'a', attributes: { replay_of: 'run' } }),
    of({
      trace_id: 'older',
      span_id: 'b',
      kind: 'llm',
      prompt: 'x',
      attributes: {
        tokens_estimated: true,
        judge_call: true,
        price_missing: true,
        time_to_first_token_ms: 40,
        prompt_name: 'greet',
        prompt_version: 3,
      },
    }),
  ];
  await store.landSpans(older);
  await store.database.run(
    "ALTER TABLE spans UPDATE flags = 0, first_token_ms = 0, prompt_name = '', prompt_version = '' WHERE trace_id = 'older' SETTINGS mutations_sync = 1",
  );
  const { data } = await got('/v1/traces/older/outline');
  const spans = data['spans'] as Record<string, unknown[]>;
  const { recorded, has_texts, usage_estimated, price_missing, judge_call, replay } = SPAN_FLAGS;
  expect(spans['flags']).toEqual([
    recorded | replay,
    recorded | has_texts | usage_estimated | price_missing | judge_call,
  ]);
  expect(spans['first_token_ms']).toEqual([-1, 40]);
  expect((await got('/v1/traces/older/spans/b')).data).toMatchObject({
    first_token_ms: 40,
    prompt_name: 'greet',
    prompt_version: '3',
    text_state: 'here',
  });
});

describe('trace', () => {
  it('returns the item of the list, with models and completeness', async () => {
    const { data } = await got('/v1/traces/run');
    const list = await got('/v1/traces');
    const [listed] = list.data as unknown as Fields[];
    expect(data).toEqual({ ...listed, complete: true, sampled: true, models: ['claude', 'gpt-4o'] });
  });

  it.each(['', '/outline', '/matches?q=a', '/conversation', '/spans/root', '/spans/root/texts/prompt'])(
    'returns 404 for a trace that no organization has: %s',
    async (path) => {
      const answer = await call(api, 'GET', `/v1/traces/missing${path}`);
      expect([answer.status, answer.json?.['code']]).toEqual([404, 'trace_not_found']);
    },
  );
});

describe('span', () => {
  it.each(['call-2', 'root', 'tool-1', 'lost'])('returns the span as the tree has it: %s', async (id) => {
    const [{ data }, tree] = [await got(`/v1/traces/run/spans/${id}`), await got('/v1/traces/run/tree')];
    const inTree = (tree.data['spans'] as Fields[]).find((span) => span['span_id'] === id);
    expect(data).toMatchObject({ ...inTree });
  });

  it.each([false, true])('tells the length of a text of which it returns the beginning (moved: %s)', async (moved) => {
    if (moved) await store.moveTexts();
    const { data } = await got('/v1/traces/long/spans/call');
    expect([data['chars'], data['truncated']]).toEqual([
      { prompt: 300_000, response: 2 },
      { prompt: true, response: false },
    ]);
    expect(String(data['prompt'])).toHaveLength(262_144);
  });

  it('returns 404 for a span that the trace does not have', async () => {
    const answer = await call(api, 'GET', '/v1/traces/run/spans/none');
    expect([answer.status, answer.json?.['code']]).toEqual([404, 'span_not_found']);
  });
});

describe('text', () => {
  it('returns the whole text as plain text that no browser runs', async () => {
    const answer = await call(api, 'GET', '/v1/traces/run/spans/call-2/texts/response');
    expect(answer.text).toBe('Done: the refund, and "refund" again.');
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/plain; charset=utf-8',
      'content-disposition': 'attachment; filename="run_call-2_response.txt"',
      'x-content-type-options': 'nosniff',
    });
  });
});

describe('matches', () => {
  it.each([false, true])('finds words in prompts and responses (moved to the searched table: %s)', async (moved) => {
    if (moved) await store.moveTexts();
    const { data } = await got('/v1/traces/run/matches?q=REFUND');
    expect(data).toEqual([
      {
        span_id: 'call-2',
        part: 'response',
        snippet: 'Done: the refund, and "refund" again.',
        marks: [
          [10, 16],
          [23, 29],
        ],
      },
    ]);
    expect((await got('/v1/traces/run/matches?q=%22the+sofa%22')).data).toMatchObject([{ part: 'prompt' }]);
    expect((await got('/v1/traces/run/matches?q=sofa+refund')).data).toMatchObject([
      { part: 'prompt' },
      { part: 'response' },
    ]);
    expect((await got('/v1/traces/run/matches?q=sof')).data).toEqual([]);
  });
});

describe('conversation', () => {
  it('returns a step for each model call', async () => {
    const { data, meta } = await got('/v1/traces/run/conversation');
    expect(meta).toMatchObject({ total: 2, next_cursor: null });
    expect(data['steps']).toMatchObject([
      {
        span_id: 'call-1',
        error: null,
        added: [{ role: 'user', text: 'first prompt' }],
        answer: { text: 'overloaded' },
      },
      {
        span_id: 'call-2',
        base_span_id: null,
        answer: {
          tool_calls: [{ name: 'book_flight', arguments: '{"flight":"HAT136"}', span_id: 'tool-1', outcome: 'error' }],
        },
      },
    ]);
  });
});
