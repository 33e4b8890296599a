// Turns an export into events of the ingest log: one event for each span, the same for the same
// span in either encoding and however often it is sent. Takes the bytes of an export; returns
// events with their partitions, and why the other spans were rejected.
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';
import { otlpEvent } from '../../../pipeline/domain/decode/otlp_span.ts';
import { eventHex, partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { ApiError } from '../../http/errors.ts';
import { InvalidOtlp } from './answer.ts';
import type { SpanGroup } from './groups.ts';
import { groupText, type ReadSpan, spanText } from './normal.ts';
import { readJson } from './read_json.ts';
import { readProtobuf } from './read_protobuf.ts';
import { InvalidExport, SpanRejected } from './values.ts';

export type Encoding = 'protobuf' | 'json';

/** An event about to be published. */
export interface SpanEvent {
  event: IngestEvent;
  partition: number;
  bytes: number;
}

export interface ReadExport {
  events: SpanEvent[];
  /** Number of rejected spans. */
  rejected: number;
  /** Reasons of the first rejected spans, with their indexes. */
  reasons: string[];
}

export interface ExportSource {
  encoding: Encoding;
  org_id: string;
  /** Milliseconds since the epoch. */
  received_at: number;
  partitions: number;
  /** Called with the bytes of every event before it is kept in memory. */
  grow: (bytes: number) => ApiError | null;
}

/** Maximum number of spans in one export; exporters send 512 at a time. */
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
  const into: Into = { out: { events: [], rejected: 0, reasons: [] }, bytes: 0, spans: 0 };
  let groups = 0;
  try {
    for (const group of source.encoding === 'protobuf' ? readProtobuf(body) : readJson(body)) {
      if (++groups > GROUPS_MAX) throw tooLarge(`more than ${GROUPS_MAX} resources and scopes`);
      readGroup(group, source, into);
    }
  } catch (error) {
    if (!(error instanceof SpanRejected || error instanceof InvalidExport)) throw error;
    const what = `The body is not an OTLP trace export in ${source.encoding === 'json' ? 'JSON' : 'protobuf'}: ${error.message}`;
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
  /** Number of spans so far, including rejected ones. */
  spans: number;
}

function readGroup({ resource, scope, spans }: SpanGroup, source: ExportSource, into: Into): void {
  let prefix = '';
  for (const read of spans) {
    if (++into.spans > SPANS_MAX) throw tooLarge(`more than ${SPANS_MAX} spans`);
    if (prefix === '')
      prefix = `{"resource":${groupText(resource)},"scope":${scope === null ? '{}' : groupText(scope)},"span":`;
    try {
      const event = eventOf(read(), prefix, source);
      into.bytes += event.bytes;
      if (into.bytes > EVENTS_BYTES_MAX)
        throw tooLarge(`more than ${EVENTS_BYTES_MAX} bytes, resource and scope counted for every span`);
      const refusal = source.grow(event.bytes);
      if (refusal !== null) throw refusal;
      into.out.events.push(event);
    } catch (error) {
      if (!(error instanceof SpanRejected)) throw error;
      into.out.rejected++;
      if (into.out.reasons.length < REASONS_MAX)
        into.out.reasons.push(`span ${into.spans - 1}: ${error.message}`.slice(0, REASON_LENGTH_MAX));
    }
  }
}

function eventOf(span: ReadSpan, prefix: string, { org_id, received_at, partitions }: ExportSource): SpanEvent {
  const checked = otlpEvent({ ...span }, received_at);
  if (!checked.ok) throw new SpanRejected(`${checked.path}: ${checked.message}`);
  const body = `${prefix}${spanText(span)}}`;
  if (
    body.length > (MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) / 3 &&
    Buffer.byteLength(body) > MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX
  )
    throw new SpanRejected('is too large');
  const { trace_id } = span;
  return {
    event: { org_id, format: 'otlp', event_hex: eventHex(body), trace_id, received_at, body },
    partition: partitionOf(org_id, trace_id, partitions),
    bytes: body.length,
  };
}
