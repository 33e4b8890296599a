import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ApiError } from '../../../api/http/errors.ts';
import { exportTrace } from '../../../api/telemetry/traces/export.ts';
import type { SpanItem } from '../../../api/http/trace_items.ts';
import { exportBody } from '../../../api/telemetry/traces/schema.ts';
import { readTimelineOf, readTree } from '../../../api/telemetry/traces/tree.ts';
import { PiiRedactor } from '../../../pipeline/domain/pii/pii.ts';
import { createPriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { createDecodeStage } from '../../../pipeline/stages/decode.ts';
import { DEFAULT_PII_POLICY } from '../../../schemas/records/pii_policy.ts';
import { aSpan } from '../../support/spans.ts';
import { storeOfOne } from '../../../sql/client/shards.ts';
import { openTestStore, type TestStore } from '../../support/store.ts';

const AT = Date.parse('2026-02-03T04:05:06.789Z');
const signal = new AbortController().signal;
let store: TestStore;

const tree = (traceId: string, orgId = 'org_a') => readTree(storeOfOne(store.client), orgId, traceId, signal);
const timeline = (traceId: string) => readTimelineOf(storeOfOne(store.client), 'org_a', traceId, signal);

/** Returns the export options of an organization without a PII policy. */
const asked = (body: Record<string, unknown>) => {
  const options = exportBody.parse(body);
  return {
    ...options,
    redactor: options.anonymize_pii ? new PiiRedactor({ ...DEFAULT_PII_POLICY, hash_key: null }) : null,
  };
};

/** Returns the export that a client receives. */
async function exported(
  traceId: string,
  body: Record<string, unknown> = {},
): Promise<{ type: string | null; text: string }> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => undefined);
  const server = createServer((_req, res: ServerResponse) => {
    exportTrace(store.client, 'org_a', traceId, asked(body), res, signal).catch((error: unknown) => {
      failed.reject(error);
      res.destroy();
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    const answer = async () => {
      const res = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
      return { type: res.headers.get('content-type'), text: await res.text() };
    };
    return await Promise.race([answer(), failed.promise]);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const RUN = [
  aSpan({
    trace_id: 'run',
    span_id: 'call-2',
    parent_span_id: 'root',
    kind: 'llm',
    started_at: AT + 300,
    ended_at: AT + 900,
    prompt: 'again',
    response: 'done: 10.0.0.1',
    attributes: { turn: 2 },
  }),
  aSpan({
    trace_id: 'run',
    span_id: 'root',
    parent_span_id: '',
    kind: 'event',
    name: 'agent',
    model: '',
    started_at: AT,
    ended_at: AT + 1000,
    prompt: '',
    response: '',
    source_format: 'custom',
    tags: ['a', 'b'],
  }),
  aSpan({
    trace_id: 'run',
    span_id: 'call-1',
    parent_span_id: 'root',
    kind: 'llm',
    outcome: 'error',
    started_at: AT + 10,
    ended_at: AT + 200,
    prompt: 'first, for jo@example.com',
    response: '',
  }),
  aSpan({
    trace_id: 'run',
    span_id: 'tool-1',
    parent_span_id: 'call-1',
    kind: 'tool',
    name: 'search',
    model: '',
    started_at: AT + 50,
    ended_at: AT + 60,
    prompt: 'query',
    response: 'hits',
  }),
];

beforeAll(async () => {
  store = await openTestStore();
  await store.landSpans(RUN.slice(0, 2));
  await store.moveTexts();
  await store.landSpans(RUN.slice(2));
  await store.landSpans([
    aSpan({ org_id: 'org_b', trace_id: 'theirs', started_at: AT }),
    aSpan({ org_id: 'org_b', trace_id: 'run', span_id: 'other', started_at: AT }),
  ]);
});
afterAll(() => store.close());

describe('a tree', () => {
  it('a tree has the root first, then spans by parent and start, with texts from either table', async () => {
    const { data, meta } = await tree('run');
    expect(data.root_span_id).toBe('root');
    expect(data.spans.map((span) => span.span_id)).toEqual(['root', 'tool-1', 'call-1', 'call-2']);
    expect(meta).toEqual({ total: 4, truncated: false });
    const [root, tool, first] = data.spans as [SpanItem, SpanItem, SpanItem];
    expect(root).toMatchObject({
      parent_span_id: null,
      name: 'agent',
      model: '',
      source_format: 'custom',
      duration_ms: 1000,
      tags: ['a', 'b'],
      children: ['call-1', 'call-2'],
    });
    expect(root.started_at).toBe('2026-02-03T04:05:06.789Z');
    expect(root.attributes).toEqual({ span_kind: 'event' });
    expect(root).not.toHaveProperty('prompt');
    expect(tool).toMatchObject({ parent_span_id: 'call-1', prompt: 'query', response: 'hits', children: [] });
    expect(first).toMatchObject({
      prompt: 'first, for jo@example.com',
      response: '',
      outcome: 'error',
      input_tokens: 10,
      output_tokens: 5,
      cost_usd: 0.000075,
      children: ['tool-1'],
    });
    expect(first.event_id).toMatch(/^evt_[0-9a-f]{16}$/);
  });

  it('a tree shows a text once while it is in both tables', async () => {
    await store.landSpans([aSpan({ trace_id: 'moving', started_at: AT, prompt: 'here and there', response: 'x' })]);
    await store.moveTexts(false);
    const { data } = await tree('moving');
    expect(data.spans).toMatchObject([{ prompt: 'here and there', response: 'x' }]);
    expect(await store.database.run("SELECT count() FROM analyst_texts WHERE trace_id = 'moving'")).toBe('1\n');
  });

  it('an unknown trace is distinguished from one of another organization', async () => {
    await expect(tree('nobody')).rejects.toMatchObject({
      code: 'trace_not_found',
      status: 404,
    } satisfies Partial<ApiError>);
    await expect(tree('theirs')).rejects.toMatchObject({
      code: 'cross_org_access',
      status: 403,
    } satisfies Partial<ApiError>);
    await expect(timeline('theirs')).rejects.toMatchObject({ code: 'cross_org_access' });
    await expect(exported('nobody')).rejects.toMatchObject({ code: 'trace_not_found' });
    expect((await tree('run', 'org_b')).data.spans.map((span) => span.span_id)).toEqual(['other']);
  });

  it('a tree accepts odd traces: without a root, with lost parents, repeated ids, or a span that is its own parent', async () => {
    await store.landSpans([
      aSpan({ trace_id: 'odd', span_id: 'same', parent_span_id: 'lost', started_at: AT + 2 }),
      aSpan({ trace_id: 'odd', span_id: 'same', parent_span_id: 'lost', started_at: AT + 1 }),
      aSpan({ trace_id: 'odd', span_id: 'self', parent_span_id: 'self', started_at: AT }),
      aSpan({ trace_id: 'odd', span_id: 'late', parent_span_id: 'same', started_at: AT - 86_400_000 * 40 }),
    ]);
    const { data } = await tree('odd');
    expect(data.root_span_id).toBeNull();
    expect(data.spans.map(({ span_id, children }) => [span_id, children])).toEqual([
      ['same', ['late']],
      ['same', ['late']],
      ['late', []],
      ['self', []],
    ]);
  });

  it('a tree keeps the digits of large integers and any shape of attributes', async () => {
    await store.landSpans([
      aSpan({
        trace_id: 'attrs',
        started_at: AT,
        attributes: {
          span_kind: 'mine',
          'a.b': 1,
          a: { b: null, c: {} },
          list: [1, 'x'],
          text: '12345678901234567890',
        },
      }),
    ]);
    await store.database.run(
      "INSERT INTO spans (org_id, started_at, ended_at, trace_id, span_id, kind, outcome, attributes, log_seq) VALUES ('org_a', '2026-01-01 00:00:00', '2026-01-01 00:00:01', 'digits', 's', 'llm', 'success', '{\"id\":12345678901234567890,\"f\":0.1}', 1000000)",
    );
    const [span] = (await tree('attrs')).data.spans;
    expect(span?.attributes).toEqual({
      span_kind: 'llm',
      'a.b': 1,
      a: { b: null, c: {} },
      list: [1, 'x'],
      text: '12345678901234567890',
    });
    expect(JSON.stringify((await tree('digits')).data.spans[0]?.attributes)).toBe(
      '{"id":12345678901234567890,"f":0.1,"span_kind":"llm"}',
    );
  });

  it('a tree is bounded to 1000 spans and says so, and an export has all of them', async () => {
    const spans = Array.from({ length: 1204 }, (_, n) =>
      aSpan({
        trace_id: 'large',
        span_id: `s${String(n).padStart(4, '0')}`,
        parent_span_id: n === 0 ? '' : 's0000',
        started_at: AT + n,
        ended_at: AT + n,
        prompt: `p${n}`,
      }),
    );
    await store.landSpans(spans);
    await store.moveTexts();
    const { data, meta } = await tree('large');
    expect(meta).toEqual({ total: 1204, truncated: true });
    expect(data.spans.map((span) => span.prompt)).toEqual(spans.slice(0, 1000).map((span) => span.prompt));
    expect(data.spans[0]?.children).toHaveLength(999);
    const { text } = await exported('large', { format: 'ndjson' });
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as SpanItem);
    expect(lines.map((span) => span.prompt)).toEqual(spans.map((span) => span.prompt));
    expect(lines[0]?.children).toHaveLength(1203);
  });
});

describe('a timeline', () => {
  it('a timeline has a track for each kind of span, relative to the start', async () => {
    expect((await timeline('run')).data).toEqual({
      trace_id: 'run',
      tracks: [
        {
          label: 'LLM calls',
          events: [
            { span_id: 'call-1', name: 'gpt-4o', start_ms: 10, end_ms: 200, model: 'gpt-4o', outcome: 'error' },
            { span_id: 'call-2', name: 'gpt-4o', start_ms: 300, end_ms: 900, model: 'gpt-4o', outcome: 'success' },
          ],
        },
        {
          label: 'Tool calls',
          events: [{ span_id: 'tool-1', name: 'search', start_ms: 50, end_ms: 60, outcome: 'success' }],
        },
        {
          label: 'Events',
          events: [{ span_id: 'root', name: 'agent', start_ms: 0, end_ms: 1000, outcome: 'success' }],
        },
      ],
    });
  });
});

describe('an export', () => {
  it('an export contains the spans of the tree, as JSON or one a line', async () => {
    const { data } = await tree('run');
    const json = await exported('run');
    expect(json.type).toBe('application/json');
    expect(JSON.parse(json.text)).toEqual({ trace_id: 'run', spans: data.spans });
    const ndjson = await exported('run', { format: 'ndjson' });
    expect(ndjson.type).toBe('application/x-ndjson');
    expect(ndjson.text.endsWith('}\n')).toBe(true);
    expect(
      ndjson.text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual(data.spans);
  });

  it('an export omits prompts or responses on request, and redacts personal data', async () => {
    const read = async (body: Record<string, unknown>) =>
      (JSON.parse((await exported('run', body)).text) as { spans: SpanItem[] }).spans;
    for (const span of await read({ include_prompts: false })) expect(span).not.toHaveProperty('prompt');
    for (const span of await read({ include_responses: false })) expect(span).not.toHaveProperty('response');
    const spans = await read({ anonymize_pii: true });
    expect(spans.map((span) => span.prompt)).toEqual([undefined, 'query', 'first, for [EMAIL]', 'again']);
    expect(spans[3]?.response).toBe('done: [IP]');
  });

  it('an export without prompts or responses contains no copy of them in the attributes of steps and calls, however short', async () => {
    const stage = createDecodeStage({
      prices: createPriceBook(() => []),
      maxPromptTokens: () => null,
      redactorOf: () => null,
    });
    const messages = [{ role: 'user', content: 'zebra' }];
    const events = [
      { name: 'look', outcome: 'success', attributes: { input: 'zebra', output: { found: 'okapi' }, n: 7 } },
      {
        name: 'ask',
        outcome: 'success',
        attributes: { span_kind: 'llm', model: 'gpt-4o', messages, response: 'okapi' },
      },
    ];
    const outcomes = stage.run(
      events.map((event, log_index) => ({
        ...{ partition: 0, log_seq: 1, log_index, org_id: 'org_a', format: 'custom' as const, trace_id: 'short' },
        ...{ event_hex: `00000000000000f${log_index}`, received_at: AT, body: JSON.stringify(event) },
      })),
    );
    await store.landSpans(outcomes.flatMap((outcome) => (outcome.kind === 'emit' ? outcome.out.spans : [])));
    expect((await tree('short')).data.spans.map(({ attributes }) => attributes)).toEqual(
      expect.arrayContaining([
        { ...events[0]?.attributes, span_kind: 'event' },
        expect.objectContaining({ messages, response: 'okapi' }),
      ]) as unknown,
    );
    const whole = (await exported('short')).text;
    expect([whole.includes('zebra'), whole.includes('okapi')]).toEqual([true, true]);
    const unasked = (await exported('short', { include_prompts: false })).text;
    expect([unasked.includes('zebra'), unasked.includes('okapi'), unasked.includes('"n":7')]).toEqual([
      false,
      true,
      true,
    ]);
    const unanswered = (await exported('short', { include_responses: false })).text;
    expect([unanswered.includes('zebra'), unanswered.includes('okapi')]).toEqual([true, false]);
    const bare = (await exported('short', { include_prompts: false, include_responses: false })).text;
    expect([bare.includes('zebra'), bare.includes('okapi')]).toEqual([false, false]);
  });

  it('an export is cut off when its reads fail on the way, so that half a file never looks whole', async () => {
    const gone = new AbortController();
    const server = createServer((_req, res) => {
      exportTrace(store.client, 'org_a', 'large', asked({ format: 'ndjson' }), res, gone.signal).catch(() =>
        res.destroy(),
      );
      const write = res.write.bind(res);
      res.write = ((chunk: string) => {
        const sent = write(chunk);
        gone.abort();
        return sent;
      }) as typeof res.write;
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const read = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}`).then((res) => res.text());
    await expect(read).rejects.toThrow();
    server.close();
  });
});
