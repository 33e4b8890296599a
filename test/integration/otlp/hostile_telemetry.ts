// Telemetry that no honest client sends, for each protocol of the intake: known names with values of any
// kind, ids and times that are none, records without end. Every record has a marker of its own, by
// which the test finds its row.
import fc from 'fast-check';
import { asJson, asProtobuf, exportOf, keyValues, logsAsJson, logsAsProtobuf } from '../../support/otlp.ts';

/** A request, and the markers of the records in it. */
export interface HostileRequest {
  path: string;
  type: string;
  body: Buffer;
  markers: string[];
  /** POST if absent. */
  method?: string;
}

export const value: fc.Arbitrary<unknown> = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 40 }) },
  fc.constantFrom('', '0', 'null', '[]', '{}', '[[', '{"a":', '\u0000', '\ud800', '9'.repeat(30), 'NaN', '2026-01-01'),
  fc.constantFrom(0, -1, 1e308, 2 ** 53, 0.1, true, false, null),
  fc.jsonValue({ maxDepth: 3 }),
  fc.jsonValue({ maxDepth: 2 }).map((json) => JSON.stringify(json)),
);
export const pick = (names: readonly string[]): fc.Arbitrary<string> =>
  fc.oneof({ weight: 6, arbitrary: fc.constantFrom(...names) }, fc.string({ minLength: 1, maxLength: 30 }));
export const fieldsOf = (names: readonly string[]): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .array(fc.tuple(pick(names), value), { maxLength: 8 })
    .map((entries) => Object.fromEntries(entries.filter(([name]) => name !== '__proto__')));

export const nanos = (): string => `${Date.now() - 1000}000000`;
export const hexOf = (digits: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: digits, maxLength: digits });
const traceId = fc.oneof(
  { weight: 8, arbitrary: hexOf(32) },
  fc.constantFrom('', '0'.repeat(32), 'ab', 'zz'.repeat(16)),
);
const time = fc.oneof({ weight: 8, arbitrary: fc.constant(null) }, fc.constantFrom('0', '1', '9'.repeat(19)));

const LOG_NAMES = [
  'gen_ai.user.message',
  'gen_ai.choice',
  'gen_ai.client.inference.operation.details',
  'gen_ai.evaluation.result',
  'claude_code.api_request',
  'claude_code.tool_result',
  'claude_code.api_error',
  'claude_code.user_prompt',
  'codex.sse_event',
  'codex.tool_result',
  'codex.user_prompt',
  'gemini_cli.api_response',
  'gemini_cli.api_error',
  'gemini_cli.tool_call',
  'user_prompt',
  '',
];
const LOG_ATTRIBUTES = [
  'event.name',
  'event.kind',
  'event.sequence',
  'conversation.id',
  'function_args',
  'arguments',
  'thoughts_token_count',
  'input_token_count',
  'cached_token_count',
  'cache_creation_tokens',
  'session.id',
  'prompt.id',
  'gen_ai.conversation.id',
  'user.email',
  'model',
  'input_tokens',
  'output_token_count',
  'cache_read_tokens',
  'cost_usd',
  'duration_ms',
  'success',
  'response_text',
  'request_id',
  'gen_ai.input.messages',
  'gen_ai.output.messages',
  'gen_ai.evaluation.name',
  'gen_ai.evaluation.score.value',
  'gen_ai.evaluation.score.label',
];
const SPAN_ATTRIBUTES = [
  'langfuse.observation.type',
  'langfuse.observation.input',
  'langfuse.observation.output',
  'langfuse.observation.model.name',
  'langfuse.observation.usage_details',
  'langfuse.observation.cost_details',
  'langfuse.observation.completion_start_time',
  'langfuse.observation.level',
  'langfuse.observation.prompt.name',
  'langfuse.observation.metadata',
  'langfuse.trace.metadata.a',
  'langfuse.trace.tags',
  'langfuse.internal.is_app_root',
  'langsmith.span.kind',
  'langsmith.usage_metadata',
  'langsmith.metadata.thread_id',
  'langsmith.span.tags',
  'gen_ai.prompt',
  'gen_ai.completion',
  'gcp.vertex.agent.llm_request',
  'gcp.vertex.agent.llm_response',
  'gcp.vertex.agent.event_id',
  'openinference.span.kind',
  'retrieval.documents.0.document.content',
  'reranker.input_documents.1',
  'gen_ai.operation.name',
  'gen_ai.memory.records',
  'gen_ai.prompt.name',
  'gen_ai.prompt.variable.x',
];

export const marked = (count: number, index: number): string[] =>
  Array.from({ length: count }, (_, at) => `m${index}-${at}`);

/** Returns the request number `index`; numbers make the markers of a run differ. */
export type Hostile = (index: number) => HostileRequest;

const logsOf = (isProtobuf: fc.Arbitrary<boolean>): fc.Arbitrary<Hostile> =>
  fc
    .record({
      records: fc.array(
        fc.record({
          traceId,
          spanId: fc.oneof({ weight: 4, arbitrary: hexOf(16) }, fc.constantFrom('', 'ff')),
          time,
          eventName: pick(LOG_NAMES),
          body: value,
          attributes: fieldsOf(LOG_ATTRIBUTES),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      isBinary: isProtobuf,
    })
    .map(({ records, isBinary }) => (index) => {
      const markers = marked(records.length, index);
      const list = records.map(({ time: at, attributes, body, ...rest }, n) => ({
        ...rest,
        timeUnixNano: at ?? nanos(),
        ...(body === null ? {} : { body: keyValues({ body })[0]?.['value'] }),
        attributes: keyValues({ ...attributes, marker: markers[n] }),
      }));
      return {
        path: '/v1/logs',
        type: isBinary ? 'application/x-protobuf' : 'application/json',
        body: isBinary ? logsAsProtobuf(list) : logsAsJson(list),
        markers,
      };
    });

export const hostileLogs = logsOf(fc.boolean());
export const protobufLogs = logsOf(fc.constant(true));

const spansOf = (isProtobuf: fc.Arbitrary<boolean>): fc.Arbitrary<Hostile> =>
  fc
    .record({
      spans: fc.array(
        fc.record({
          traceId,
          spanId: hexOf(16),
          name: pick(['call_llm', 'claude_code.interaction']),
          time,
          attributes: fieldsOf(SPAN_ATTRIBUTES),
        }),
        { minLength: 1, maxLength: 4 },
      ),
      isBinary: isProtobuf,
    })
    .map(({ spans, isBinary }) => (index) => {
      const markers = marked(spans.length, index);
      const list = spans.map(({ time: at, attributes, ...rest }, n) => ({
        ...rest,
        startTimeUnixNano: at ?? nanos(),
        endTimeUnixNano: nanos(),
        attributes: keyValues({ ...attributes, marker: markers[n] }),
      }));
      const groups = exportOf(list);
      return {
        path: '/api/public/otel/v1/traces',
        type: isBinary ? 'application/x-protobuf' : 'application/json',
        body: isBinary ? asProtobuf(groups) : asJson(groups),
        markers,
      };
    });

export const hostileSpans = spansOf(fc.boolean());
export const protobufSpans = spansOf(fc.constant(true));

export const hostileMetrics: fc.Arbitrary<Hostile> = fc
  .record({
    metrics: fc.array(fieldsOf(['name', 'gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary']), {
      maxLength: 4,
    }),
    cut: fc.option(fc.nat(200)),
  })
  .map(({ metrics, cut }) => () => {
    const body = Buffer.from(JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }));
    return {
      path: '/v1/metrics',
      type: 'application/json',
      body: cut === null ? body : body.subarray(0, cut),
      markers: [],
    };
  });

const LEGACY_TYPES = [
  'trace-create',
  'span-create',
  'span-update',
  'generation-create',
  'generation-update',
  'event-create',
  'observation-create',
  'sdk-log',
  'score-create',
];
const LEGACY_FIELDS = [
  'name',
  'input',
  'output',
  'model',
  'usage',
  'usageDetails',
  'costDetails',
  'startTime',
  'endTime',
  'completionStartTime',
  'level',
  'metadata',
  'tags',
  'userId',
  'promptVersion',
  'parentObservationId',
  'value',
  'dataType',
];

/** Markers are the ids of observations; every fifth item has the id of the one before it. */
export const hostileIngestion: fc.Arbitrary<Hostile> = fc
  .array(fc.record({ type: pick(LEGACY_TYPES), timestamp: value, trace: fc.nat(3), body: fieldsOf(LEGACY_FIELDS) }), {
    minLength: 1,
    maxLength: 6,
  })
  .map((items) => (index) => {
    const markers = marked(items.length, index).map((marker, n, all) =>
      n % 5 === 4 ? (all[n - 1] ?? marker) : marker,
    );
    const batch = items.map(({ type, timestamp, trace: own, body }, n) => {
      const trace = n % 5 === 4 ? (items[n - 1]?.trace ?? own) : own;
      const place = type.startsWith('trace-') ? {} : { traceId: `trace-${index}-${trace}` };
      const id = type.startsWith('trace-') ? `trace-${index}-${trace}` : markers[n];
      return { id: `item-${index}-${n}`, type, timestamp, body: { ...body, id, ...place } };
    });
    return {
      path: '/api/public/ingestion',
      type: 'application/json',
      body: Buffer.from(JSON.stringify({ batch })),
      markers,
    };
  });

const RUN_FIELDS = [
  'name',
  'run_type',
  'start_time',
  'end_time',
  'error',
  'tags',
  'session_name',
  'dotted_order',
  'events',
];
const RUN_PARTS = ['inputs', 'outputs', 'extra', 'error', 'events', 'serialized', 'anything'];

/** Markers are the ids of runs. */
export const hostileRuns: fc.Arbitrary<Hostile> = fc
  .array(
    fc.record({
      fields: fieldsOf(RUN_FIELDS),
      parts: fc.array(fc.tuple(fc.constantFrom(...RUN_PARTS), value), { maxLength: 3 }),
      kind: fc.oneof({ weight: 6, arbitrary: fc.constant('post') }, fc.constantFrom('patch', 'feedback', 'other')),
      isEnded: fc.boolean(),
    }),
    { minLength: 1, maxLength: 4 },
  )
  .map((runs) => (index) => {
    const markers = marked(runs.length, index);
    const parts = runs.flatMap(({ fields, parts: extra, kind, isEnded }, n): [string, unknown][] => {
      const id = markers[n] ?? '';
      const run = { ...fields, id, trace_id: `run-${index}`, ...(isEnded ? { end_time: Date.now() } : {}) };
      return [
        [`${kind}.${id}`, run],
        ...extra.map(([name, part]): [string, unknown] => [`${kind}.${id}.${name}`, part]),
      ];
    });
    const text = parts.map(
      ([name, part]) =>
        `--xyz\r\nContent-Disposition: form-data; name="${name}"\r\nContent-Type: application/json\r\n\r\n${JSON.stringify(part)}\r\n`,
    );
    return {
      path: '/langsmith/runs/multipart',
      type: 'multipart/form-data; boundary=xyz',
      body: Buffer.from(`${text.join('')}--xyz--\r\n`),
      markers,
    };
  });

/** Returns the requests as unary calls of a method of gRPC. */
export const grpcOf = (hostile: fc.Arbitrary<Hostile>, path: string): fc.Arbitrary<Hostile> =>
  hostile.map((make) => (index) => {
    const request = make(index);
    const prefix = Buffer.alloc(5);
    prefix.writeUInt32BE(request.body.length, 1);
    return { ...request, path, body: Buffer.concat([prefix, request.body]) };
  });

/** Returns a request with some bytes changed, removed or repeated. */
export const damaged = (hostile: fc.Arbitrary<Hostile>): fc.Arbitrary<Hostile> =>
  fc
    .tuple(
      hostile,
      fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(255)), { maxLength: 4 }),
      fc.boolean(),
    )
    .map(([make, changes, isCut]) => (index) => {
      const request = make(index);
      const body = Buffer.from(request.body);
      for (const [share, byte] of changes) body[Math.floor(share * (body.length - 1))] = byte;
      const end = Math.floor((changes[0]?.[0] ?? 1) * body.length);
      return { ...request, body: isCut ? body.subarray(0, end) : body, markers: [] };
    });
