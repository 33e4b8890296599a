// The partition of the ingest log to which a trace belongs, so that all of its events are read in
// order by one worker. It must never change: the log and the store hold partitions.

const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;

/**
 * Returns the partition of the ingest log, 0 to partitions - 1: FNV-1a 32 over the UTF-8 bytes of
 * org_id followed by trace_id.
 */
export function partitionOf(orgId: string, traceId: string, partitions: number): number {
  return fnv1a32(traceId, fnv1a32(orgId, FNV_OFFSET)) % partitions;
}

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
