// The batches of Langfuse's clients, POST /api/public/ingestion: scores of all SDKs, and the traces,
// spans, generations and events of the older ones. Takes {batch: [{id, type, timestamp, body}]};
// answers 207 with one result for each item. A score waits in the log for its trace; the events of a
// trace wait in the stream LANGFUSE, from where a worker folds them into spans. An item that cannot
// be accepted fails alone.
import { z } from 'zod';
import { foldLegacy, legacyType, traceOf } from '../../../pipeline/domain/langfuse/fold.ts';
import { deeperThan, DEPTH_MAX } from '../../../pipeline/domain/text/nesting.ts';
import { wellFormedJson } from '../../../pipeline/domain/text/well_formed.ts';
import type { UserScore } from '../../../schemas/codec.ts';
import { isoMillis } from '../../../schemas/formats/times.ts';
import type { LangfuseMessage } from '../../../schemas/records/langfuse.ts';
import { MalformedBody, parseJson } from '../../http/body.ts';
import { ApiError, describeIssues } from '../../http/errors.ts';
import { spanEvent, type SpanEvent } from '../compat/events.ts';
import type { CompatAnswer, CompatReading, CompatRequest, Protocol } from '../compat/handler.ts';
import { foreignTraceId } from '../compat/score.ts';
import { scoreOf } from './scores.ts';

export interface IngestionDeps {
  partitions: number;
  /** Stores a score until its trace arrives. @throws ApiError rate_limited */
  queuePending: (score: UserScore) => Promise<void>;
  /** Stores events until their trace is folded. @throws ApiError rate_limited, upstream_unavailable */
  queueParts: (message: LangfuseMessage) => Promise<void>;
}

export const INGESTION_PATH = '/api/public/ingestion';
/** Maximum items of one batch; clients send at most some hundred. */
export const ITEMS_MAX = 10_000;
/** Scores and traces that are stored at a time. */
const AT_ONCE = 50;
const SCOPE = 'langfuse';

const item = z.object({
  id: z.string({ error: 'must be a text' }).min(1).max(200),
  type: z.string({ error: 'must be a text' }).max(100),
  timestamp: z.string().max(64).nullish(),
  body: z.record(z.string(), z.unknown(), { error: 'must be an object' }),
});
type Item = z.output<typeof item>;
const spanId = z
  .string()
  .regex(/^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/, { error: 'must be 1 to 128 of letters, digits, _ . : -' })
  .nullish();
const observation = z.object({ id: spanId, parentObservationId: spanId });

interface Success {
  id: string;
  status: number;
}
interface Failure {
  id: string;
  status: number;
  message: string;
  error: string;
}

export function ingestionProtocol(deps: IngestionDeps): Protocol {
  return { route: INGESTION_PATH, method: 'POST', read: (request) => readBatch(request, deps) };
}

function readBatch(request: CompatRequest, deps: IngestionDeps): CompatReading {
  const batch = batchOf(request.body);
  const results: Results = { successes: [], errors: [] };
  const scores: { id: string; score: UserScore }[] = [];
  const traces = new Map<string, { message: LangfuseMessage; ids: string[] }>();
  const later: SpanEvent[] = [];
  for (const given of batch) {
    try {
      const one = item.parse(given);
      if (one.type === 'score-create') scores.push({ id: one.id, score: scoreIn(one, request) });
      else if (one.type === 'sdk-log') results.successes.push({ id: one.id, status: 201 });
      else later.push(...addLegacy(one, traces, request, deps.partitions));
    } catch (error) {
      results.errors.push(failureOf(idOf(given), error));
    }
  }
  return {
    events: [],
    later,
    items: batch.length,
    finish: () => storeAll({ results, scores, traces: [...traces.values()] }, deps),
  };
}

/** @throws MalformedBody, ApiError for a body that holds no batch */
function batchOf(body: Buffer): unknown[] {
  const parsed = parseJson(body);
  const batch =
    typeof parsed === 'object' && parsed !== null ? (parsed as Record<string, unknown>)['batch'] : undefined;
  if (!Array.isArray(batch)) throw new ApiError('invalid_request', 'batch: must be a list of events');
  if (batch.length > ITEMS_MAX)
    throw new ApiError('payload_too_large', `A batch may not hold more than ${ITEMS_MAX} events. Send it in parts.`);
  if (deeperThan(parsed, DEPTH_MAX)) throw new MalformedBody(`is nested deeper than ${DEPTH_MAX} levels`);
  return JSON.parse(wellFormedJson(JSON.stringify(batch))) as unknown[];
}

const idOf = (given: unknown): string => {
  const id = typeof given === 'object' && given !== null ? (given as Record<string, unknown>)['id'] : undefined;
  return typeof id === 'string' ? id.slice(0, 200) : '';
};

function scoreIn({ id, timestamp, body }: Item, { credential, received_at }: CompatRequest): UserScore {
  return scoreOf(body, { credential, key: id, given_at: isoMillis(timestamp ?? ''), now: received_at });
}

/**
 * Adds an event to the message of its trace. Returns the span that it would be alone, by which the
 * budget judges the request.
 * @throws ApiError, ZodError
 */
function addLegacy(
  { id, type, timestamp, body }: Item,
  traces: Map<string, { message: LangfuseMessage; ids: string[] }>,
  { credential, received_at }: CompatRequest,
  partitions: number,
): SpanEvent[] {
  if (legacyType(type) === null)
    throw new ApiError(
      'invalid_request',
      `type: ${type} is not known; accepted are score-create, trace-create, span-create, generation-create, event-create and their updates`,
    );
  const { org_id } = credential;
  const trace = foreignTraceId.safeParse(traceOf({ type, body }));
  if (!trace.success)
    throw new ApiError(
      'invalid_request',
      type === 'trace-create' ? 'body.id: must be a trace id' : 'body.traceId: must be a trace id',
    );
  observation.parse(body);
  const trace_id = trace.data;
  const one = { id, type, timestamp: timestamp ?? new Date(received_at).toISOString(), body, received_at };
  const spans = foldLegacy(trace_id, [one], new Set()).map(({ span }) =>
    spanEvent(span, { org_id, received_at, partitions, scope: SCOPE }),
  );
  const refused = spans.find((result) => !result.ok);
  if (refused?.ok === false) throw new ApiError('invalid_request', `body.${refused.message}`);
  const held = traces.get(trace_id);
  if (held === undefined) traces.set(trace_id, { message: { org_id, trace_id, items: [one] }, ids: [id] });
  else {
    held.message.items.push(one);
    held.ids.push(id);
  }
  return spans.flatMap((result) => (result.ok ? [result.event] : []));
}

interface Results {
  successes: Success[];
  errors: Failure[];
}

interface Work {
  results: Results;
  scores: readonly { id: string; score: UserScore }[];
  traces: readonly { message: LangfuseMessage; ids: readonly string[] }[];
}

async function storeAll({ results, scores, traces }: Work, deps: IngestionDeps): Promise<CompatAnswer> {
  const tasks = [
    ...scores.map(({ id, score }) => ({ ids: [id] as readonly string[], store: () => deps.queuePending(score) })),
    ...traces.map(({ ids, message }) => ({ ids, store: () => deps.queueParts(message) })),
  ];
  for (let from = 0; from < tasks.length; from += AT_ONCE)
    await Promise.all(
      tasks.slice(from, from + AT_ONCE).map(async ({ ids, store }) => {
        try {
          await store();
          for (const id of ids) results.successes.push({ id, status: 201 });
        } catch (error) {
          for (const id of ids) results.errors.push(failureOf(id, error));
        }
      }),
    );
  return { status: 207, json: results };
}

function failureOf(id: string, error: unknown): Failure {
  if (error instanceof ApiError)
    return { id, status: error.status === 422 ? 400 : error.status, message: error.detail, error: error.code };
  if (error instanceof z.ZodError) return { id, status: 400, message: describeIssues(error), error: 'invalid_request' };
  return { id, status: 502, message: 'The item could not be stored. Send it again.', error: 'upstream_unavailable' };
}
