// From an export to events of the log: one event a span, the same for the same span in whichever encoding and however often.
// In: bytes of an export. Out: events with their partitions, and what was wrong with the spans that are not among them.
import { MESSAGE_BYTES_MAX } from '../../ops/streams.ts';
import { otlpEvent } from '../../pipeline/domain/decode/otlp_span.ts';
import { eventHex, partitionOf } from '../../pipeline/domain/ids.ts';
import type { IngestEvent } from '../../schemas/codec.ts';
import { ApiError } from '../http/errors.ts';
import type { SpanGroup } from './groups.ts';
import { groupText, type ReadSpan, spanText } from './normal.ts';
import { readJson } from './read_json.ts';
import { readProtobuf } from './read_protobuf.ts';
import { NoExport, SpanRefused } from './values.ts';

export type Encoding = 'protobuf' | 'json';

/** An event on its way into the log. */
export interface SpanEvent {
  event: IngestEvent;
  partition: number;
  bytes: number;
}

export interface ReadExport {
  events: SpanEvent[];
  /** Spans that are not taken. */
  rejected: number;
  /** What is wrong with the first of them, with their places. */
  reasons: string[];
}

export interface ExportSource {
  encoding: Encoding;
  org_id: string;
  /** Milliseconds since the epoch. */
  received_at: number;
  partitions: number;
  /** Asked for the bytes of every event, before it is kept. */
  grow: (bytes: number) => ApiError | null;
}

/** Spans of one export; exporters send 512 at a time. */
export const SPANS_MAX = 20_000;
/** Of all events of an export together: resource and scope stand in each of them. */
export const EVENTS_BYTES_MAX = 32 * 1024 * 1024;
/** Room for the envelope around a body in its message. */
const ENVELOPE_BYTES_MAX = 4096;
const REASONS_MAX = 5;
const REASON_LENGTH_MAX = 200;

/**
 * Reads an export.
 * @throws ApiError invalid_request when it is no OTLP; payload_too_large beyond the bounds above; what `grow` returned
 */
export function readExport(body: Buffer, source: ExportSource): ReadExport {
  const out: ReadExport = { events: [], rejected: 0, reasons: [] };
  const bytes = { total: 0 };
  let spans = 0;
  try {
    for (const group of source.encoding === 'protobuf' ? readProtobuf(body) : readJson(body)) {
      spans += group.spans.length;
      if (spans > SPANS_MAX) throw tooLarge(`more than ${String(SPANS_MAX)} spans`);
      readGroup(group, source, { out, bytes, first: spans - group.spans.length });
    }
  } catch (error) {
    if (!(error instanceof SpanRefused || error instanceof NoExport)) throw error;
    const what = `The body is no OTLP trace export in ${source.encoding === 'json' ? 'JSON' : 'protobuf'}: ${error.message}`;
    throw new ApiError('invalid_request', what.slice(0, REASON_LENGTH_MAX), { cause: error });
  }
  return out;
}

function tooLarge(what: string): ApiError {
  return new ApiError('payload_too_large', `An export takes no ${what}. Send it in parts.`);
}

interface Into {
  out: ReadExport;
  bytes: { total: number };
  /** Number of the group's first span in the export. */
  first: number;
}

function readGroup({ resource, scope, spans }: SpanGroup, source: ExportSource, { out, bytes, first }: Into): void {
  const prefix = `{"resource":${groupText(resource)},"scope":${groupText(scope)},"span":`;
  for (const [index, read] of spans.entries()) {
    try {
      const event = eventOf(read(), prefix, source);
      bytes.total += event.bytes;
      if (bytes.total > EVENTS_BYTES_MAX) throw tooLarge(`more than ${String(EVENTS_BYTES_MAX)} bytes, resource and scope counted for every span`);
      const refusal = source.grow(event.bytes);
      if (refusal !== null) throw refusal;
      out.events.push(event);
    } catch (error) {
      if (!(error instanceof SpanRefused)) throw error;
      out.rejected++;
      if (out.reasons.length < REASONS_MAX) out.reasons.push(`span ${String(first + index)}: ${error.message}`.slice(0, REASON_LENGTH_MAX));
    }
  }
}

function eventOf(span: ReadSpan, prefix: string, { org_id, received_at, partitions }: ExportSource): SpanEvent {
  const checked = otlpEvent({ ...span }, received_at);
  if (!checked.ok) throw new SpanRefused(`${checked.path}: ${checked.message}`);
  const body = `${prefix}${spanText(span)}}`;
  if (body.length > (MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) / 3 && Buffer.byteLength(body) > MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX)
    throw new SpanRefused('is too large');
  const { trace_id } = span;
  return {
    event: { org_id, format: 'otlp', event_hex: eventHex(body), trace_id, received_at, body },
    partition: partitionOf(org_id, trace_id, partitions),
    bytes: body.length,
  };
}
