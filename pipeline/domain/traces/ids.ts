// Ids derived from content, and the partition of the ingest log that an event belongs to. In:
// compact JSON, ids as given. Out: hex16, trc_… ids, partition numbers. Pure; the API (at ingest)
// and decode share it, so that the id returned to a client is the id in the store.
import { hash } from 'node:crypto';
import type { SourceFormat } from '../../../schemas/codec.ts';

export { partitionOf } from '../../../schemas/partition_of.ts';

/** Number of hex characters in a derived id. */
const HEX_LENGTH = 16;

/** Returns the first 16 hex characters of SHA-256 over the UTF-8 bytes of a text. */
export function hex16(text: string): string {
  return hash('sha256', text, 'hex').slice(0, HEX_LENGTH);
}

/**
 * Returns the hex16 of an event, over its compact JSON with keys in the order received. event_id,
 * span_id and trace_id are derived from it.
 */
export function eventHex(compactJson: string): string {
  return hex16(compactJson);
}

/**
 * Returns the span id of the tool child for intermediate step `index` (from 0) of a chain event.
 */
export function chainStepSpanId(compactJson: string, index: number): string {
  return `spn_${hex16(`${compactJson}:${index}`)}`;
}

/**
 * Returns the trace of an event: trace_id as given; for app events without one, trc_ + hex16 of the
 * raw session_id, since a session is a trace; else trc_ + the event's own hex.
 */
export function traceIdOf(format: SourceFormat, event: Readonly<Record<string, unknown>>, hex: string): string {
  const given = event['trace_id'];
  if (typeof given === 'string') return given;
  const session = event['session_id'];
  if (format === 'app' && typeof session === 'string') return `trc_${hex16(session)}`;
  return `trc_${hex}`;
}

/** Returns the span id of an event: span_id as given, else spn_ + the event's own hex. */
export function spanIdOf(event: Readonly<Record<string, unknown>>, hex: string): string {
  const given = event['span_id'];
  return typeof given === 'string' ? given : `spn_${hex}`;
}

/** Returns the key of a trace within its partition. */
export const traceKey = (orgId: string, traceId: string): string => `${orgId} ${traceId}`;
