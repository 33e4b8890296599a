// Makes events of the ingest log from spans in the shape of the log, for protocols that are
// translated into OTLP spans. Takes a span; returns its event with its partition, or why it cannot
// be accepted. Ids may be any that ingest accepts, not only those of OpenTelemetry.
import { otlpEvent } from '../../../pipeline/domain/decode/otlp_span.ts';
import { type LoggedSpan, loggedText } from '../../../pipeline/domain/traces/logged_span.ts';
import { eventHex, partitionOf } from '../../../pipeline/domain/traces/ids.ts';
import type { IngestEvent } from '../../../schemas/codec.ts';
import { MESSAGE_BYTES_MAX } from '../../../schemas/streams.ts';

/** An event about to be published. */
export interface SpanEvent {
  event: IngestEvent;
  partition: number;
  bytes: number;
}

/** Room for the envelope of an event in its message. */
const ENVELOPE_BYTES_MAX = 4096;

export type SpanResult = { ok: true; event: SpanEvent } | { ok: false; message: string };

/** Returns the event of a span of one instrumentation scope. */
export function spanEvent(
  span: LoggedSpan,
  {
    org_id,
    received_at,
    partitions,
    scope,
  }: { org_id: string; received_at: number; partitions: number; scope: string },
): SpanResult {
  const checked = otlpEvent({ ...span }, received_at);
  if (!checked.ok) return { ok: false, message: `${checked.path}: ${checked.message}` };
  const body = loggedText(span, scope);
  if (body.length > (MESSAGE_BYTES_MAX - ENVELOPE_BYTES_MAX) / 3 && Buffer.byteLength(body) > MESSAGE_BYTES_MAX / 2)
    return { ok: false, message: 'is too large' };
  const { trace_id } = span;
  return {
    ok: true,
    event: {
      event: { org_id, format: 'otlp', event_hex: eventHex(body), trace_id, received_at, body },
      partition: partitionOf(org_id, trace_id, partitions),
      bytes: body.length,
    },
  };
}
