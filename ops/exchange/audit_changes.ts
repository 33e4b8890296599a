// What of a mutation's changes goes into the audit log: no secret, and no more than a record holds. Pure; never throws, as
// the mutation has happened by then.

/** Bytes of JSON that the changes of one record take; of larger ones the names of their fields and the small values are left. */
export const CHANGES_BYTES_MAX = 16 * 1024;
const FIELD_NAMES_MAX = 100;
const FIELD_NAME_CHARS_MAX = 64;
/** Bytes of JSON of all names that are left, and of all values. */
const NAMES_BYTES_MAX = 8 * 1024;
const VALUES_BYTES_MAX = 4 * 1024;
const TEXT_CHARS_MAX = 256;
/** Fields of ours in what is left; a change of the same name stands among the names only. */
const OWN_FIELDS = new Set(['truncated', 'fields']);

/** Fields whose values are secrets by their name, alone or as the last word: token, register_token; not max_prompt_tokens. */
const SECRET_FIELD =
  /(^|[_-])(raw_key|token|secret|password|passphrase|authorization|cookie|credentials?|private_key)$/i;
/** Our own secrets wherever they stand; a key_prefix is shorter than any of them. */
const SECRET_TEXT = /\b(sk_svc_|whsec_|rt_)[A-Za-z0-9_-]{12,}/g;

/** A URL within a text. The scheme is bounded, so that no text takes more than linear time. */
const URL_TEXT = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)([^\s"'<>]*)/gi;
/** Fields whose URLs name a public place: their path is what a reader of the log looks for. */
const PLAIN_PATH = /^repo_url$/i;

/**
 * Returns a text whose URLs show where they lead and nothing that may let somebody in: users, passwords, queries and fragments
 * are blanked, and so are paths, which are the secret of many webhooks.
 */
function withMaskedUrls(name: string, text: string): string {
  const whole = URL.parse(text.trim());
  if (whole !== null && whole.host !== '') return maskedUrl(name, whole);
  return text.replace(URL_TEXT, (found, scheme: string, rest: string) => {
    const url = URL.parse(found);
    return url !== null && url.host !== '' ? maskedUrl(name, url) : rest === '' ? found : `${scheme}***`;
  });
}

function maskedUrl(name: string, { protocol, username, password, host, pathname, search, hash }: URL): string {
  const user = username === '' && password === '' ? '' : '***@';
  const path = PLAIN_PATH.test(name) ? pathname : pathname.length > 1 ? '/***' : '';
  return `${protocol}//${user}${host}${path}${search === '' ? '' : '?***'}${hash === '' ? '' : '#***'}`;
}

/**
 * The changes as JSON text.
 * @returns a JSON object of at most CHANGES_BYTES_MAX bytes; where they are larger {truncated: true, fields: [their names]} with those of
 * them that are null, a boolean, a number or a short text, which say what kind of a change it was
 */
export function auditableChanges(changes: Readonly<Record<string, unknown>>): string {
  try {
    const text = JSON.stringify(changes, withoutSecrets);
    if (Buffer.byteLength(text) <= CHANGES_BYTES_MAX) return text;
  } catch {
    // A loop, say: what the record can still show is that these fields changed.
  }
  return smallPart(changes);
}

function withoutSecrets(name: string, value: unknown): unknown {
  if (SECRET_FIELD.test(name)) return undefined;
  if (typeof value === 'string') return withMaskedUrls(name, value).replaceAll(SECRET_TEXT, '$1***');
  return typeof value === 'bigint' ? String(value) : value;
}

/** A name as it is shown: without a secret of ours, and cut. */
const shownName = (name: string): string => name.replaceAll(SECRET_TEXT, '$1***').slice(0, FIELD_NAME_CHARS_MAX);

function smallPart(changes: Readonly<Record<string, unknown>>): string {
  const names = Object.keys(changes).filter((name) => !SECRET_FIELD.test(name));
  const fields = within(NAMES_BYTES_MAX, names.slice(0, FIELD_NAMES_MAX).map(shownName));
  const small = names.flatMap((name): [string, unknown][] => {
    const value = withoutSecrets(name, changes[name]);
    return isSmall(value) && !OWN_FIELDS.has(name) && shownName(name) === name ? [[name, value]] : [];
  });
  return JSON.stringify({ truncated: true, fields, ...Object.fromEntries(within(VALUES_BYTES_MAX, small)) });
}

function isSmall(value: unknown): boolean {
  if (typeof value === 'string') return value.length <= TEXT_CHARS_MAX;
  return value === null || typeof value === 'boolean' || typeof value === 'number';
}

/** The first of the items, as many as fit into so many bytes of JSON. */
function within<T>(bytesMax: number, items: readonly T[]): T[] {
  let bytes = 0;
  return items.filter((item) => (bytes += Buffer.byteLength(JSON.stringify(item))) <= bytesMax);
}
