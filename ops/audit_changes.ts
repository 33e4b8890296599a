// What of a mutation's changes goes into the audit log: no secret, and no more than a record holds. Pure; never throws, as
// the mutation has happened by then.

/** Bytes of JSON that the changes of one record take; larger ones are replaced by the names of their fields. */
export const CHANGES_BYTES_MAX = 16 * 1024;
const FIELD_NAMES_MAX = 100;
const FIELD_NAME_CHARS_MAX = 64;

/** Fields whose values are secrets by their name, alone or as the last word: token, register_token; not max_prompt_tokens. */
const SECRET_FIELD = /(^|[_-])(raw_key|token|secret|password|passphrase|authorization|cookie|credentials?|private_key)$/i;
/** Our own secrets wherever they stand; a key_prefix is shorter than any of them. */
const SECRET_TEXT = /\b(sk_svc_|whsec_|rt_)[A-Za-z0-9_-]{12,}/g;

/**
 * The changes as JSON text.
 * @returns a JSON object of at most CHANGES_BYTES_MAX bytes; {truncated: true, fields: […]} where they are larger
 */
export function auditableChanges(changes: Readonly<Record<string, unknown>>): string {
  try {
    const text = JSON.stringify(changes, withoutSecrets);
    if (Buffer.byteLength(text) <= CHANGES_BYTES_MAX) return text;
  } catch {
    // A loop, say: what the record can still show is that these fields changed.
  }
  return namesOnly(changes);
}

function withoutSecrets(name: string, value: unknown): unknown {
  if (SECRET_FIELD.test(name)) return undefined;
  if (typeof value === 'string') return value.replaceAll(SECRET_TEXT, '$1***');
  return typeof value === 'bigint' ? String(value) : value;
}

function namesOnly(changes: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(changes).filter((name) => !SECRET_FIELD.test(name));
  const fields = names.slice(0, FIELD_NAMES_MAX).map((name) => name.replaceAll(SECRET_TEXT, '$1***').slice(0, FIELD_NAME_CHARS_MAX));
  return JSON.stringify({ truncated: true, fields });
}
