// Hostile scores and prompts: evaluation results in spans and log records, scores of Langfuse, feedback
// of LangSmith, prompts of Langfuse. A score has its marker as its comment, by which the test finds it.
import fc from 'fast-check';
import { asProtobuf, exportOf, keyValues, logsAsJson } from '../../support/otlp.ts';
import { fieldsOf, type Hostile, type HostileRequest, hexOf, marked, nanos, pick, value } from './hostile_telemetry.ts';

const JSON_TYPE = 'application/json';
const TRACE_ID = 'ab'.repeat(16);
/** Names and values of which the service makes a score, and others. */
const names = fc.constantFrom('Relevance', ' padded ', 'é'.repeat(200), '0');
const noNames = fc.constantFrom('', '   ', 'n'.repeat(201), 7, true, null);
const values = fc.constantFrom<Record<string, unknown>>(
  { 'gen_ai.evaluation.score.value': 0.5 },
  { 'gen_ai.evaluation.score.value': -1e-300, 'gen_ai.evaluation.score.label': '' },
  { 'gen_ai.evaluation.score.label': 'pass' },
  { 'gen_ai.evaluation.score.value': 'high', 'gen_ai.evaluation.score.label': 'pass' },
  { 'gen_ai.evaluation.score.value': 3, 'gen_ai.evaluation.score.label': 'x'.repeat(2000) },
);
const noValues = fc.constantFrom<Record<string, unknown>>(
  {},
  { 'gen_ai.evaluation.score.value': 'high' },
  { 'gen_ai.evaluation.score.label': '' },
  { 'gen_ai.evaluation.score.label': 'x'.repeat(1001) },
  { 'gen_ai.evaluation.score.value': true, 'gen_ai.evaluation.score.label': false },
);

const result = fc.oneof(
  { weight: 4, arbitrary: fc.record({ name: names, fields: values, isScore: fc.constant(true) }) },
  { weight: 1, arbitrary: fc.record({ name: noNames, fields: values, isScore: fc.constant(false) }) },
  { weight: 1, arbitrary: fc.record({ name: names, fields: noValues, isScore: fc.constant(false) }) },
);

/** Markers are the explanations of the results that become scores. The same index gives the same bytes. */
export const hostileEvaluations: fc.Arbitrary<Hostile> = fc
  .record({
    traceId: hexOf(32).filter((id) => !/^0+$/.test(id)),
    spanId: hexOf(16).filter((id) => !/^0+$/.test(id)),
    results: fc.array(result, { minLength: 1, maxLength: 3 }),
    // A text that is not well-formed has no form in protobuf, so its span is rejected.
    other: fieldsOf(['gen_ai.response.id', 'gen_ai.evaluation.other']).filter(
      (fields) => !/\\ud[89a-f]/.test(JSON.stringify(fields)),
    ),
    isLog: fc.boolean(),
    at: fc.integer({ min: 1, max: 3_600_000 }),
  })
  .map(({ traceId, spanId, results, other, isLog, at }) => (index) => {
    const markers = marked(results.length, index);
    const time = `${BASE_MS - at}000000`;
    const sent = results.map(({ name, fields }, n) => ({
      timeUnixNano: time,
      attributes: keyValues({
        ...other,
        ...fields,
        ...(name === null ? {} : { 'gen_ai.evaluation.name': name }),
        'gen_ai.evaluation.explanation': markers[n],
        ...(isLog ? { 'event.name': 'gen_ai.evaluation.result' } : {}),
      }),
    }));
    const span = { traceId, spanId, name: 'judged', kind: 1, startTimeUnixNano: time, endTimeUnixNano: time };
    return {
      path: isLog ? '/v1/logs' : '/v1/traces',
      type: isLog ? JSON_TYPE : 'application/x-protobuf',
      body: isLog
        ? logsAsJson(sent.map((one) => ({ ...one, traceId, spanId })))
        : asProtobuf(
            exportOf([{ ...span, events: sent.map((one) => ({ ...one, name: 'gen_ai.evaluation.result' })) }]),
          ),
      markers: markers.filter((_, n) => results[n]?.isScore === true),
    };
  });
/** Times of a run do not depend on when a request is made. */
const BASE_MS = Date.now() - 1000;

const LANGFUSE_FIELDS = ['id', 'observationId', 'value', 'dataType', 'name', 'configId', 'metadata', 'sessionId'];
const LANGSMITH_FIELDS = ['id', 'run_id', 'score', 'value', 'key', 'created_at', 'feedback_source', 'correction'];
const good = fc.constantFrom<Record<string, unknown>>(
  { name: 'stars', value: 4.5, key: 'stars', score: 4.5 },
  { name: 'helpful', value: 1, dataType: 'BOOLEAN', key: 'helpful', score: true },
  { name: 'tone', value: 'kind', dataType: 'CATEGORICAL', key: 'tone', score: 'kind' },
);

/** The marker is the comment, and the id of the item in a batch. Some requests name another trace or none. */
export const hostileScores: fc.Arbitrary<Hostile> = fc
  .record({
    base: good,
    langfuse: fieldsOf(LANGFUSE_FIELDS),
    langsmith: fieldsOf(LANGSMITH_FIELDS),
    kind: fc.constantFrom('score', 'list', 'batch', 'feedback'),
    isHostile: fc.boolean(),
    traceId: fc.oneof(
      { weight: 6, arbitrary: fc.constant(TRACE_ID as unknown) },
      fc.constantFrom<unknown>('', '..', 'a b', 7, null, 'x'.repeat(129)),
    ),
  })
  .map(({ base, langfuse, langsmith, kind, isHostile, traceId }) => (index) => {
    const marker = `m${index}`;
    const fields = isHostile ? (kind === 'feedback' ? langsmith : langfuse) : {};
    // An id of the client's own, or none, may make one score of two: feedback without an id is that of its run and key.
    const given = Object.hasOwn(fields, 'id') ? fields['id'] : marker;
    const id = typeof given === 'string' || given === null ? { id: marker } : {};
    const score = { ...base, traceId, trace_id: traceId, ...fields, ...id, comment: marker };
    const own = kind === 'feedback' ? { id: marker, ...score } : score;
    const lists = { batch: { batch: [{ id: marker, type: 'score-create', body: score }] }, list: [7, score] };
    const body = kind === 'batch' || kind === 'list' ? lists[kind] : own;
    const scores = '/api/public/scores';
    const path = { score: scores, list: scores, batch: '/api/public/ingestion', feedback: '/langsmith/feedback' };
    return { path: path[kind], type: JSON_TYPE, body: Buffer.from(JSON.stringify(body)), markers: [marker] };
  });

/** Returns the request that makes the trace of the scores. */
export const aTrace = (): HostileRequest => {
  const at = nanos();
  const span = {
    traceId: TRACE_ID,
    spanId: 'cd'.repeat(8),
    name: 'scored',
    startTimeUnixNano: at,
    endTimeUnixNano: at,
  };
  return {
    path: '/v1/traces',
    type: 'application/x-protobuf',
    body: asProtobuf(exportOf([span])),
    markers: [],
  };
};

const PROMPTS = '/api/public/v2/prompts';
const PROMPT_FIELDS = ['type', 'prompt', 'config', 'labels', 'tags', 'commitMessage', 'isActive'];
const prompts = fc.constantFrom<unknown>(
  'Hello {{name}}',
  [{ role: 'system', content: 'Greet {{name}}' }],
  [{ type: 'placeholder', name: 'history' }],
  [],
  [{ role: 'user' }],
  '{{',
);

/** Creations of prompts and moves of labels; the marker is the name of a prompt that is created. */
export const hostilePrompts: fc.Arbitrary<Hostile> = fc
  .record({
    name: pick(['greeting', 'support', 'a/b', '..', '']),
    prompt: prompts,
    fields: fieldsOf(PROMPT_FIELDS),
    isHostile: fc.boolean(),
    isLabel: fc.oneof({ weight: 3, arbitrary: fc.constant(false) }, fc.constant(true)),
    labels: fc.oneof(fc.constantFrom<unknown>(['production'], ['latest'], ['UPPER'], 'x'), value),
    version: fc.constantFrom('1', '2', '0', '-1', '999999999999', 'x', '%00'),
  })
  .map(({ name, prompt, fields, isHostile, isLabel, labels, version }) => () => {
    const body = isLabel ? { newLabels: labels } : { name, prompt, ...(isHostile ? fields : {}) };
    return {
      path: isLabel ? `${PROMPTS}/${encodeURIComponent(name.toWellFormed())}/versions/${version}` : PROMPTS,
      method: isLabel ? 'PATCH' : 'POST',
      type: JSON_TYPE,
      body: Buffer.from(JSON.stringify(body)),
      markers: [name],
    };
  });

/** Returns the request that lists a page of the prompts. */
export const listOfPrompts = (page: number): HostileRequest => ({
  path: `${PROMPTS}?limit=200&page=${page}`,
  method: 'GET',
  type: JSON_TYPE,
  body: Buffer.alloc(0),
  markers: [],
});
