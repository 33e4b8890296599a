// Validates an OTLP log record and places it in a trace. The API validates a record before it is
// published, decode before it becomes a row. In: a record in the shape of the ingest log
// (snake_case names, hex ids, digits) and the attributes of its resource. Out: the fields that all
// formats have, or the rejection.
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { checkTimes } from '../../../schemas/formats/times.ts';
import { hex16 } from '../traces/ids.ts';
import { isFields, type Fields } from './draft.ts';
import { firstText } from './otlp_parts.ts';
import { refusedAmount } from './otlp_span.ts';
import { isPromptRecord, LOG_SESSIONS, logName, PROMPTS, SESSION_ALONE } from './otlp_log_names.ts';

const TRACE_ID = /^[\w.:-]{1,128}$/;
const HEX_TRACE = /^[0-9a-f]{32}$/;
const HEX_SPAN = /^[0-9a-f]{16}$/;
const DIGITS = /^\d{1,20}$/;
/** Digits of nanoseconds below the millisecond. */
const NANO_DIGITS = 6;

/** The trace and the time of a log record, in the fields of an event of any format. */
interface OtlpLogEvent extends Fields {
  trace_id: string;
  /** Absent: the id is derived from the record. */
  span_id?: string;
  parent_span_id: string;
  ended_at: string;
}

type Place = Pick<OtlpLogEvent, 'trace_id' | 'span_id' | 'parent_span_id'>;

const asTraceId = (named: string): string => (TRACE_ID.test(named) ? named : `trc_${hex16(named)}`);

/**
 * Returns where a record stands. A record belongs to the trace and the span that it names. A record
 * that names none belongs to the trace of its prompt, below the record of the prompt itself, else to
 * the trace of its session. Null: it names nothing.
 */
function placeOf(log: Fields, attributes: Fields, resource: Fields): Place | null {
  const { trace_id = '', span_id = '' } = log;
  const session = firstText([attributes, resource], LOG_SESSIONS);
  const name = logName(log);
  if (SESSION_ALONE.test(name) && session !== undefined) return { trace_id: asTraceId(session), parent_span_id: '' };
  if (typeof trace_id === 'string' && trace_id !== '')
    return { trace_id, parent_span_id: typeof span_id === 'string' ? span_id : '' };
  const prompt = firstText([attributes], PROMPTS);
  if (prompt !== undefined) {
    const trace = asTraceId(prompt);
    const root = hex16(`prompt of ${trace}`);
    return isPromptRecord(name)
      ? { trace_id: trace, span_id: root, parent_span_id: '' }
      : { trace_id: trace, parent_span_id: root };
  }
  return session === undefined ? null : { trace_id: asTraceId(session), parent_span_id: '' };
}

function millisOf(log: Fields, receivedAt: number): number {
  for (const key of ['time_unix_nano', 'observed_time_unix_nano']) {
    const nanos = log[key];
    const ms = typeof nanos === 'string' && DIGITS.test(nanos) ? Number(nanos.slice(0, -NANO_DIGITS)) : 0;
    if (ms > 0) return ms;
  }
  return receivedAt;
}

function refuse(path: string, message: string): Refusal {
  return { ok: false, path, message };
}

/**
 * Validates a log record.
 * @param resource attributes of its resource
 * @param receivedAt milliseconds since the epoch; the time of a record without one
 */
export function otlpLogEvent(
  log: Fields,
  resource: Fields,
  receivedAt: number,
): { ok: true; event: OtlpLogEvent } | Refusal {
  const { trace_id = '', span_id = '' } = log;
  const attributes = isFields(log['attributes']) ? log['attributes'] : {};
  if (typeof trace_id !== 'string' || (trace_id !== '' && !HEX_TRACE.test(trace_id)))
    return refuse('traceId', 'must be 16 bytes');
  if (typeof span_id !== 'string' || (span_id !== '' && !HEX_SPAN.test(span_id)))
    return refuse('spanId', 'must be 8 bytes');
  const place = placeOf(log, attributes, resource);
  if (place === null)
    return refuse('traceId', 'is needed for a record without prompt.id, session.id or gen_ai.conversation.id');
  const amount = refusedAmount(attributes);
  if (amount !== null) return amount;
  const at = millisOf(log, receivedAt);
  if (!Number.isFinite(new Date(at).getTime())) return refuse('timeUnixNano', 'is no time');
  const event: OtlpLogEvent = { ...place, ended_at: new Date(at).toISOString() };
  const times = checkTimes(event, receivedAt);
  return times.ok ? { ok: true, event } : refuse('timeUnixNano', times.message);
}
