// Turns an export into events of the ingest log: one event for each span or log record, the same
// for the same record in either encoding and however often it is sent. Takes the bytes of an
// export; returns events with their partitions, and why the other records were rejected. Data
// points of metrics are counted and never stored.
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { otlpLogEvent } from '../../../pipeline/domain/decode/otlp_log_event.ts';
import { otlpEvent } from '../../../pipeline/domain/decode/otlp_span.ts';
import { eventHex, partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import type { Refusal } from '../../../schemas/formats/refusal.ts';
import { isoMillis } from '../../../schemas/formats/times.ts';
import { tooOld } from '../../http/backfill.ts';
import { ApiError } from '../../http/errors.ts';
import { InvalidOtlp } from './answer.ts';
import { type Evaluation, EVALUATIONS_MAX, evaluationsOfLog, evaluationsOfSpan } from './evaluations.ts';
import type { RecordGroup } from './groups.ts';
import { groupText, logText, type ReadGroup, type ReadLog, type ReadSpan, spanText } from './normal.ts';
import { jsonLog, jsonPoints, jsonSpan, readJson } from './read_json.ts';
import { protobufLog, protobufPoints, protobufSpan, readProtobuf } from './read_protobuf.ts';
import { type Signal, SIGNALS } from './signals.ts';
import { InvalidExport, SpanRejected } from './values.ts';

export type Encoding = 'protobuf' | 'json';

/** An event about to be published. */
export interface SpanEvent {
  event: IngestEvent;
  partition: number;
  bytes: number;
}

export interface ReadExport {
  signal: Signal;
  events: SpanEvent[];
  /** Number of rejected records; of metrics, the number of all data points. */
  rejected: number;
  /** Reasons of the first rejected records, with their indexes. */
  reasons: string[];
  /** Evaluation results in accepted records, with the events that hold them. */
  evaluations: { result: Evaluation; event_hex: string }[];
}

export interface ExportSource {
  signal: Signal;
  encoding: Encoding;
  org_id: string;
  /** Milliseconds since the epoch. */
  received_at: number;
  partitions: number;
  /** True: records may be at most 400 days old. */
  backfill?: boolean;
  /** Called with the bytes of every event before it is kept in memory. */
  grow: (bytes: number) => ApiError | null;
}

/** Maximum number of spans, log records or metrics in one export; exporters send 512 at a time. */
export const SPANS_MAX = 20_000;
/** Maximum number of resources and scopes in one export. */
export const GROUPS_MAX = 20_000;
/** Maximum bytes of all events of an export: each holds its resource and scope. */
export const EVENTS_BYTES_MAX = 32 * 1024 * 1024;
/** Room for the envelope of an event in its message. */
const ENVELOPE_BYTES_MAX = 4096;
const REASONS_MAX = 5;
const REASON_LENGTH_MAX = 200;

/**
 * Reads an export.
 * @throws InvalidOtlp; ApiError payload_too_large beyond the bounds above; what `grow` returned
 */
export function readExport(body: Buffer, source: ExportSource): ReadExport {
  const { signal, encoding } = source;
  const { lists } = SIGNALS[signal];
  const into: Into = { out: { signal, events: [], rejected: 0, reasons: [], evaluations: [] }, bytes: 0, records: 0 };
  const isBinary = encoding === 'protobuf';
  try {
    if (signal === 'metrics')
      countPoints(isBinary ? readProtobuf(body, protobufPoints) : readJson(body, lists, jsonPoints), into);
    else if (signal === 'logs')
      readGroups(isBinary ? readProtobuf(body, protobufLog) : readJson(body, lists, jsonLog), LOG, source, into);
    else readGroups(isBinary ? readProtobuf(body, protobufSpan) : readJson(body, lists, jsonSpan), SPAN, source, into);
  } catch (error) {
    if (!(error instanceof SpanRejected || error instanceof InvalidExport)) throw error;
    const what = `The body is not an OTLP ${signal} export in ${isBinary ? 'protobuf' : 'JSON'}: ${error.message}`;
    throw new InvalidOtlp(what.slice(0, REASON_LENGTH_MAX), error);
  }
  return into.out;
}

function tooLarge(what: string): ApiError {
  return new ApiError('payload_too_large', `An export may not hold ${what}. Send it in parts.`);
}

interface Into {
  out: ReadExport;
  /** Bytes of all events so far. */
  bytes: number;
  /** Number of records so far, including rejected ones. */
  records: number;
}

/** Makes events of the records of one signal. */
interface Shape<T> {
  /** Name of the record in the body of an event. */
  key: 'span' | 'log';
  text: (record: T) => string;
  /** Returns the trace of a record that can be stored. */
  check: (
    record: T,
    resource: ReadGroup,
    received_at: number,
  ) => { ok: true; trace_id: string; started_at: string } | Refusal;
  evaluations: (record: T, trace_id: string) => Evaluation[];
}

const SPAN: Shape<ReadSpan> = {
  key: 'span',
  text: spanText,
  check: (span, _resource, received_at) => {
    const checked = otlpEvent({ ...span }, received_at);
    return checked.ok ? { ok: true, trace_id: span.trace_id, started_at: checked.event.started_at } : checked;
  },
  evaluations: evaluationsOfSpan,
};

const LOG: Shape<ReadLog> = {
  key: 'log',
  text: logText,
  check: (log, resource, received_at) => {
    const checked = otlpLogEvent({ ...log }, resource.attributes, received_at);
    return checked.ok
      ? { ok: true, trace_id: checked.event.trace_id, started_at: String(checked.event['started_at']) }
      : checked;
  },
  evaluations: evaluationsOfLog,
};

function* boundedGroups<T>(groups: Iterable<RecordGroup<T>>): Generator<RecordGroup<T>> {
  let count = 0;
  for (const group of groups) {
    if (++count > GROUPS_MAX) throw tooLarge(`more than ${GROUPS_MAX} resources and scopes`);
    yield group;
  }
}

function countPoints(groups: Iterable<RecordGroup<number>>, into: Into): void {
  for (const { records } of boundedGroups(groups)) {
    for (const read of records) {
      if (++into.records > SPANS_MAX) throw tooLarge(`more than ${SPANS_MAX} metrics`);
      into.out.rejected += read();
    }
  }
}

function readGroups<T>(groups: Iterable<RecordGroup<T>>, shape: Shape<T>, source: ExportSource, into: Into): void {
  for (const group of boundedGroups(groups)) readGroup(group, shape, source, into);
}

function readGroup<T>(group: RecordGroup<T>, shape: Shape<T>, source: ExportSource, into: Into): void {
  const { resource, scope, records } = group;
  const { record: one, records: many } = SIGNALS[source.signal];
  let prefix = '';
  for (const read of records) {
    if (++into.records > SPANS_MAX) throw tooLarge(`more than ${SPANS_MAX} ${many}`);
    if (prefix === '')
      prefix = `{"resource":${groupText(resource)},"scope":${scope === null ? '{}' : groupText(scope)},"${shape.key}":`;
    try {
      const given = read();
      const event = eventOf(given, resource, { shape, prefix, source });
      into.bytes += event.bytes;
      if (into.bytes > EVENTS_BYTES_MAX)
        throw tooLarge(`more than ${EVENTS_BYTES_MAX} bytes, resource and scope counted for every ${one}`);
      const refusal = source.grow(event.bytes);
      if (refusal !== null) throw refusal;
      into.out.events.push(event);
      for (const result of shape.evaluations(given, event.event.trace_id))
        into.out.evaluations.push({ result, event_hex: event.event.event_hex });
      if (into.out.evaluations.length > EVALUATIONS_MAX)
        throw tooLarge(`more than ${EVALUATIONS_MAX} evaluation results`);
    } catch (error) {
      if (!(error instanceof SpanRejected)) throw error;
      into.out.rejected++;
      if (into.out.reasons.length < REASONS_MAX)
        into.out.reasons.push(`${one} ${into.records - 1}: ${error.message}`.slice(0, REASON_LENGTH_MAX));
    }
  }
}

function eventOf<T>(
  record: T,
  resource: ReadGroup,
  { shape, prefix, source }: { shape: Shape<T>; prefix: string; source: ExportSource },
): SpanEvent {
  const { org_id, received_at, partitions } = source;
  const checked = shape.check(record, resource, received_at);
  if (!checked.ok) throw new SpanRejected(`${checked.path}: ${checked.message}`);
  const age = source.backfill === true ? tooOld(isoMillis(checked.started_at), received_at) : null;
  if (age !== null) throw new SpanRejected(`its start ${age}`);
  const body = `${prefix}${shape.text(record)}}`;
  if (
    body.length > (MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) / 3 &&
    Buffer.byteLength(body) > MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX
  )
    throw new SpanRejected('is too large');
  const { trace_id } = checked;
  return {
    event: { org_id, format: 'otlp', event_hex: eventHex(body), trace_id, received_at, body },
    partition: partitionOf(org_id, trace_id, partitions),
    bytes: body.length,
  };
}
