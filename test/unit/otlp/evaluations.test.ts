// Evaluation results of the GenAI conventions become scores, from span events and from log records.
import fc from 'fast-check';
import { expect, it, test } from 'vitest';
import { scoreName } from '../../../api/intake/compat/score.ts';
import { EVALUATIONS_MAX, scoreOfEvaluation } from '../../../api/intake/otlp/evaluations.ts';
import { type ReadExport, readExport } from '../../../api/intake/otlp/events.ts';
import type { Signal } from '../../../api/intake/otlp/signals.ts';
import { userScoreCodec } from '../../../schemas/codec.ts';
import { keyValues } from '../../support/otlp.ts';
import '../../support/properties.ts';

const NOW = Date.parse('2026-02-01T12:00:00.000Z');
/** With a part of a millisecond. */
const AT = '1769947140000999900';
const TRACE = '5b8efff798038103d269b633813fc60c';
const SPAN = 'eee19b7ec3c1b174';

type Value = string | number;
const attributesOf = (given: Record<string, Value>) =>
  Object.entries(given).map(([key, value]) => ({
    key,
    value: typeof value === 'number' ? { doubleValue: value } : { stringValue: value },
  }));

const read = (signal: Signal, body: unknown): ReadExport =>
  readExport(Buffer.from(JSON.stringify(body)), {
    signal,
    encoding: 'json',
    org_id: 'org_a',
    received_at: NOW,
    partitions: 8,
    grow: () => null,
  });

const spanWith = (...results: Record<string, Value>[]): unknown => ({
  resourceSpans: [
    {
      scopeSpans: [
        {
          spans: [
            {
              traceId: TRACE,
              spanId: SPAN,
              name: 'chat',
              startTimeUnixNano: AT,
              endTimeUnixNano: AT,
              events: results.map((given) => ({
                timeUnixNano: AT,
                name: 'gen_ai.evaluation.result',
                attributes: attributesOf(given),
              })),
            },
          ],
        },
      ],
    },
  ],
});
const recordOf = (record: Record<string, unknown>): unknown => ({
  resourceLogs: [{ scopeLogs: [{ logRecords: [{ timeUnixNano: AT, traceId: TRACE, ...record }] }] }],
});

const scoresOf = ({ evaluations }: ReadExport) =>
  evaluations.map(({ result, event_hex }) =>
    scoreOfEvaluation(result, {
      event_hex,
      now: NOW,
      credential: { kind: 'api_key', org_id: 'org_a', key_id: 'ak_1', scopes: new Set() },
    }),
  );

it.each([
  [
    'a number with its label and explanation',
    {
      'gen_ai.evaluation.name': 'Relevance',
      'gen_ai.evaluation.score.value': 0.8,
      'gen_ai.evaluation.score.label': 'relevant',
      'gen_ai.evaluation.explanation': 'It names the city.',
    },
    { name: 'Relevance', data_type: 'numeric', number: 0.8, text: '', comment: 'relevant: It names the city.' },
  ],
  [
    'a label alone',
    { 'gen_ai.evaluation.name': 'Tone', 'gen_ai.evaluation.score.label': 'polite' },
    { name: 'Tone', data_type: 'categorical', number: null, text: 'polite', comment: '' },
  ],
])('%s of a span event becomes a score of the span', (_, given, score) => {
  const [made] = scoresOf(read('traces', spanWith(given)));
  expect(made).toMatchObject({
    ...score,
    org_id: 'org_a',
    trace_id: TRACE,
    span_id: SPAN,
    author_type: 'otel',
    author_id: 'ak_1',
    created_at: Number(AT.slice(0, -6)),
  });
});

it.each([
  ['its event name', { eventName: 'gen_ai.evaluation.result', spanId: SPAN }, SPAN],
  ['an attribute, for the trace as a whole', {}, ''],
])('a log record named by %s becomes a score', (_, record, span_id) => {
  const attributes = attributesOf({
    ...('eventName' in record ? {} : { 'event.name': 'gen_ai.evaluation.result' }),
    'gen_ai.evaluation.name': 'Relevance',
    'gen_ai.evaluation.score.value': 1,
  });
  const out = read('logs', recordOf({ ...record, attributes }));
  expect(out.events).toHaveLength(1);
  expect(scoresOf(out)).toMatchObject([{ trace_id: TRACE, span_id, name: 'Relevance', number: 1 }]);
});

it.each([
  ['no name', { 'gen_ai.evaluation.score.value': 1 }],
  ['neither a number nor a label', { 'gen_ai.evaluation.name': 'Relevance', 'error.type': 'timeout' }],
  ['an empty label', { 'gen_ai.evaluation.name': 'Relevance', 'gen_ai.evaluation.score.label': '' }],
])('a result with %s stays an event and becomes no score', (_, given) => {
  const out = read('traces', spanWith(given));
  expect([out.events.length, out.rejected, out.evaluations.length]).toEqual([1, 0, 0]);
});

test('the same result sent again is the same score, and results of one span are different scores', () => {
  const result = { 'gen_ai.evaluation.name': 'Relevance', 'gen_ai.evaluation.score.value': 1 };
  const [first, again] = [1, 2].map(() => scoresOf(read('traces', spanWith(result, result))));
  expect(first).toEqual(again);
  expect(new Set(first?.map(({ score_id }) => score_id)).size).toBe(2);
});

test('a rejected record gives no score, and an export with too many results is refused', () => {
  const result = { 'gen_ai.evaluation.name': 'Relevance', 'gen_ai.evaluation.score.value': 1 };
  const rejected = read('logs', recordOf({ traceId: '', attributes: attributesOf(result) }));
  expect([rejected.rejected, rejected.evaluations]).toEqual([1, []]);
  const record = {
    timeUnixNano: AT,
    traceId: TRACE,
    eventName: 'gen_ai.evaluation.result',
    attributes: attributesOf(result),
  };
  const logRecords = Array<typeof record>(EVALUATIONS_MAX + 1).fill(record);
  expect(() => read('logs', { resourceLogs: [{ scopeLogs: [{ logRecords }] }] })).toThrow(
    `more than ${EVALUATIONS_MAX} evaluation results`,
  );
});

const anyText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 300 }),
  fc.constantFrom('\ud800', '\udc00a', '\u0000', ' ', '*.>', 'é'.repeat(1001), '😀'.repeat(12_000)),
);
const anyResult = fc.record(
  {
    'gen_ai.evaluation.name': anyText,
    'gen_ai.evaluation.score.value': fc.oneof(fc.double(), fc.integer(), anyText, fc.jsonValue()),
    'gen_ai.evaluation.score.label': fc.oneof(anyText, fc.jsonValue()),
    'gen_ai.evaluation.explanation': fc.oneof(anyText, fc.jsonValue()),
  },
  { requiredKeys: [] },
);

/** The times that a score keeps: those of the last day. */
const anyNanos = fc.bigInt({ min: BigInt(NOW - 86_400_000) * 1_000_000n, max: BigInt(NOW) * 1_000_000n });

test('every result with a valid name, at any nanosecond, can be queued and keeps its value', () => {
  let queued = 0;
  fc.assert(
    fc.property(anyResult, anyNanos, (given, nanos) => {
      const record = { eventName: 'gen_ai.evaluation.result', attributes: keyValues(given) };
      const out = read('logs', recordOf({ ...record, timeUnixNano: String(nanos) }));
      for (const score of scoresOf(out)) {
        queued++;
        const stored = userScoreCodec.decode(userScoreCodec.encode(score), userScoreCodec.fingerprint);
        expect(scoreName.safeParse(stored.name).success).toBe(true);
        expect({ ...stored, name: '', text: '', comment: '' }).toEqual({ ...score, name: '', text: '', comment: '' });
        expect([stored.name, stored.text, stored.comment]).toEqual(
          [score.name, score.text, score.comment].map((text) => text.toWellFormed()),
        );
      }
    }),
    { numRuns: 500 },
  );
  expect(queued).toBeGreaterThan(50);
});
