// Validates an OTLP span: ids, times, and amounts that the store can hold. The API validates a span
// before it is published, decode before it becomes a row. In: a span in the shape of the ingest log
// (snake_case names, hex ids, digits). Out: the fields that all formats have, or the rejection.
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { attributes as amounts } from '../../../schemas/formats/fields.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import type { TraceOutcome } from '../traces/span.ts';
import { isFields, type Fields } from './draft.ts';

const DIGITS = /^\d{1,20}$/;
const HEX = /^[0-9a-f]+$/;
/** Digits of nanoseconds below the millisecond. */
const NANO_DIGITS = 6;
const TRACE_ID_LENGTH = 32;
const SPAN_ID_LENGTH = 16;
const STATUS_ERROR = 2;
const TIMEOUT = /time[-_ ]?d?[-_ ]?out|deadline/i;

/** The fields of an event of any format, made from a span. */
export interface OtlpEvent extends Fields {
  trace_id: string;
  span_id: string;
  parent_span_id: string;
  started_at: string;
  ended_at: string;
  duration_ms: number;
  outcome: TraceOutcome;
}

function refuse(path: string, message: string): Refusal {
  return { ok: false, path, message };
}

/** Returns the milliseconds of a text of nanoseconds, truncated; NaN for anything else. */
function millisOf(nanos: unknown): number {
  return typeof nanos === 'string' && DIGITS.test(nanos) ? Number(nanos.slice(0, -NANO_DIGITS)) : NaN;
}

/** Ids of services whose protocols are translated into spans, such as UUIDs. The readers of OTLP are stricter. */
const FOREIGN_ID = /^(?!\.{1,2}$)[A-Za-z0-9_.:-]{1,128}$/;

const isId = (value: unknown, length: number): value is string =>
  typeof value === 'string' && ((value.length === length && HEX.test(value)) || FOREIGN_ID.test(value));

/**
 * Validates a span.
 * @param nowMs when it was received, milliseconds since the epoch
 */
export function otlpEvent(span: Fields, nowMs: number): { ok: true; event: OtlpEvent } | Refusal {
  const { trace_id, span_id, parent_span_id = '', name, attributes } = span;
  if (!isId(trace_id, TRACE_ID_LENGTH)) return refuse('traceId', 'must be 16 bytes');
  if (!isId(span_id, SPAN_ID_LENGTH)) return refuse('spanId', 'must be 8 bytes');
  if (parent_span_id !== '' && !isId(parent_span_id, SPAN_ID_LENGTH)) return refuse('parentSpanId', 'must be 8 bytes');
  if (typeof name !== 'string') return refuse('name', 'must be a text');
  const start = millisOf(span['start_time_unix_nano']);
  const end = millisOf(span['end_time_unix_nano']);
  if (!(start > 0)) return refuse('startTimeUnixNano', 'is needed');
  if (!(end > 0)) return refuse('endTimeUnixNano', 'is needed');
  // A clock that was set back during a span is no reason to reject it.
  const ended = Math.max(start, end);
  const event: OtlpEvent = {
    trace_id,
    span_id,
    parent_span_id,
    started_at: new Date(start).toISOString(),
    ended_at: new Date(ended).toISOString(),
    duration_ms: ended - start,
    outcome: outcomeOf(span),
  };
  const times = checkTimes(event, nowMs);
  if (!times.ok) return refuse(times.path === 'ended_at' ? 'endTimeUnixNano' : 'startTimeUnixNano', times.message);
  const amount = refusedAmount(attributes);
  if (amount !== null) return amount;
  return { ok: true, event };
}

/** Returns the rejection of an amount that the store cannot hold; null where there is none. */
export function refusedAmount(attributes: unknown): Refusal | null {
  if (!isFields(attributes) || !('cost_usd' in attributes || 'sandbox_seconds' in attributes)) return null;
  const checked = amounts.safeParse(attributes);
  return checked.success
    ? null
    : refuse(`attributes.${String(checked.error.issues[0]?.path[0])}`, 'must be an amount that is not negative');
}

/**
 * Returns the outcome: an error by the span's status, or a timeout when the error's type or text
 * says so.
 */
function outcomeOf(span: Fields): TraceOutcome {
  const status = isFields(span['status']) ? span['status'] : {};
  if (status['code'] !== STATUS_ERROR) return 'success';
  const attributes = isFields(span['attributes']) ? span['attributes'] : {};
  const said = [
    attributes['error.type'],
    attributes['exception.type'],
    exceptionOf(span)['exception.type'],
    status['message'],
  ];
  return said.some((text) => typeof text === 'string' && TIMEOUT.test(text.slice(0, 1000))) ? 'timeout' : 'error';
}

/** Returns the attributes of the last exception that the span recorded. */
export function exceptionOf(span: Fields): Fields {
  const events = Array.isArray(span['events']) ? (span['events'] as unknown[]) : [];
  const found = events.findLast((event) => isFields(event) && event['name'] === 'exception');
  return isFields(found) && isFields(found['attributes']) ? found['attributes'] : {};
}
