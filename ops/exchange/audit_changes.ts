// Returns what the audit log stores of a mutation's changes: no secret, and no more than a record
// holds. It is pure and never throws, because the mutation has already happened.

/**
 * Maximum bytes of JSON that the changes of one record take. Of larger changes, the names of their
 * fields and the small values remain.
 */
export const CHANGES_BYTES_MAX = 16 * 1024;
const FIELD_NAMES_MAX = 100;
const FIELD_NAME_CHARS_MAX = 64;
/** Maximum bytes of JSON of all remaining names, and of all remaining values. */
const NAMES_BYTES_MAX = 8 * 1024;
const VALUES_BYTES_MAX = 4 * 1024;
const TEXT_CHARS_MAX = 256;
/**
 * Fields that the remaining part adds; a changed field of the same name appears among the names
 * only.
 */
const OWN_FIELDS = new Set(['truncated', 'fields']);

/**
 * Fields that hold secrets by their name, alone or as its last word: token, register_token; not
 * max_prompt_tokens.
 */
const SECRET_FIELD =
  /(^|[_-])(raw_key|token|secret|password|passphrase|authorization|cookie|credentials?|private_key)$/i;
/**
 * Secrets that the service issues, anywhere in a text. A key_prefix is shorter than any of them.
 */
const SECRET_TEXT = /\b(sk_svc_|whsec_|rt_)[A-Za-z0-9_-]{12,}/g;

/**
 * A URL within a text. The length of the scheme is bounded, so the search takes linear time for
 * every text.
 */
const URL_TEXT = /\b([a-z][a-z0-9+.-]{0,20}:\/\/)([^\s"'<>]*)/gi;
/** Fields whose URLs name a public place: a reader of the log needs their path. */
const PLAIN_PATH = /^repo_url$/i;

/**
 * Returns a text in which URLs show their host but nothing that could grant access: users,
 * passwords, queries and fragments are blanked, and so are paths, which are the secret of many
 * webhooks.
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
 * Returns the changes as JSON text.
 * @returns a JSON object of at most CHANGES_BYTES_MAX bytes. Larger changes become {truncated:
 * true, fields: [their names]} with those of the values that are null, a boolean, a number or a
 * short text, which show what kind of change it was.
 */
export function auditableChanges(changes: Readonly<Record<string, unknown>>): string {
  try {
    const text = JSON.stringify(changes, withoutSecrets);
    if (Buffer.byteLength(text) <= CHANGES_BYTES_MAX) return text;
  } catch {
    // The changes cannot be serialized, for example because of a cycle; the record can still show
    // the names of the fields.
  }
  return smallPart(changes);
}

function withoutSecrets(name: string, value: unknown): unknown {
  if (SECRET_FIELD.test(name)) return undefined;
  if (typeof value === 'string') return withMaskedUrls(name, value).replaceAll(SECRET_TEXT, '$1***');
  return typeof value === 'bigint' ? String(value) : value;
}

/** Returns a field name without a secret of the service, truncated. */
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

/** Returns the first items, as many as fit into the maximum bytes of JSON. */
function within<T>(bytesMax: number, items: readonly T[]): T[] {
  let bytes = 0;
  return items.filter((item) => (bytes += Buffer.byteLength(JSON.stringify(item))) <= bytesMax);
}
