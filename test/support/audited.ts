// Reads the audit log's stream, for tests that run an API without a worker: no consumer removes
// entries from it.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { AUDIT_STREAM } from '../../schemas/streams.ts';
import { type AuditEntry, auditEntryCodec, FINGERPRINT_HEADER } from '../../schemas/codec.ts';

/** Returns every intent and outcome, oldest first. */
export async function auditEntries({ jsm }: Log): Promise<AuditEntry[]> {
  const { state } = await jsm.streams.info(AUDIT_STREAM);
  const entries: AuditEntry[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const message = await jsm.streams.getMessage(AUDIT_STREAM, { seq }).catch(() => null);
    if (message !== null) entries.push(auditEntryCodec.decode(message.data, message.header.get(FINGERPRINT_HEADER)));
  }
  return entries;
}
