// Ids derived from content, and the partition of the ingest log that an event belongs to. In:
// compact JSON, ids as given. Out: hex16, trc_… ids, partition numbers. Pure; the API (at ingest)
// and decode share it, so that the id returned to a client is the id in the store.
import { hash } from 'node:crypto';
import type { SourceFormat } from '../../../schemas/codec.ts';

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

/**
 * Returns the partition of the ingest log, 0 to partitions - 1: FNV-1a 32 over the UTF-8 bytes of
 * org_id followed by trace_id.
 */
export function partitionOf(orgId: string, traceId: string, partitions: number): number {
  return fnv1a32(traceId, fnv1a32(orgId, FNV_OFFSET)) % partitions;
}

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/** Continues FNV-1a from `state` over a text's UTF-8 bytes; unsigned 32 bits. */
function fnv1a32(text: string, state: number): number {
  let h = state;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code > 0x7f) return fnvBytes(Buffer.from(text.slice(i), 'utf8'), h);
    h = Math.imul(h ^ code, FNV_PRIME);
  }
  return h >>> 0;
}

function fnvBytes(bytes: Uint8Array, state: number): number {
  let h = state;
  for (const byte of bytes) h = Math.imul(h ^ byte, FNV_PRIME);
  return h >>> 0;
}

/** Returns the key of a trace within its partition. */
export const traceKey = (orgId: string, traceId: string): string => `${orgId} ${traceId}`;
