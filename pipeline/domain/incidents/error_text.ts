// Normalizes error texts: numbers, ids and quoted parts become marks, so that two failures with one
// cause have one text. In: an error text as received. Out: one line of bounded length. Pure, and
// linear in the length of the text.

/**
 * Maximum characters of an error that are read. The column error_text of texts holds as many
 * (sql/migrations/0048_find_error_texts.sql).
 */
export const ERROR_CHARS_MAX = 2000;
/** Maximum characters of the result. */
export const NORMAL_CHARS_MAX = 300;

/** Fields of a JSON error that may hold its message, the most specific first. */
const MESSAGE_FIELDS = ['error_message', 'message', 'error', 'detail', 'title', 'reason'] as const;
/** Maximum nesting of such an error: {"error": {"error": {"message": …}}}. */
const NESTING_MAX = 4;

/**
 * Quoted parts. A following colon is captured, since it makes the quoted part the name of a field.
 */
const QUOTED: readonly RegExp[] = [
  /"(?:[^"\\]|\\.)*"(\s*:)?/g,
  /`[^`]*`(\s*:)?/g,
  /[“„][^”“„]*[”“](\s*:)?/g,
  // The apostrophe within a word (can't, user's) does not count.
  /(?<![\p{L}\p{N}])'[^'\n]*'(?![\p{L}\p{N}])(\s*:)?/gu,
];

const UNITS = 'ns|us|µs|ms|s|sec|secs|m|min|mins|h|hr|hrs|kb|mb|gb|tb|kib|mib|gib|x|px|rpm|rps|tpm|th|st|nd|rd';
/** Replaces a number or an id: whether an id of hex digits looks like a number is chance. */
const VALUE = '#';
const QUOTE = '"…"';

/** Applied in this order: later rules do not see what an earlier one replaced. */
const RULES: readonly (readonly [pattern: RegExp, mark: string])[] = [
  [/[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/gu, VALUE],
  // The query of a URL differs from call to call; host and path identify what was called.
  [/(?<=\b[a-z][a-z0-9+.-]{1,10}:\/\/[^\s?#<>]{1,500})[?#][^\s<>)\]}]*/gi, ''],
  [/\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?/g, VALUE],
  // 1,204.5 · -3 · 12:30 · 10.0.0.7:8080 · 2026-05-14, alone or with a unit.
  [
    new RegExp(
      `(?<![\\p{L}\\p{N}_.-])[+-]?\\p{N}+(?:[.,:/-]\\p{N}+)*(?:e[+-]?\\p{N}+)?(?=(?:${UNITS})?(?![\\p{L}\\p{N}_-]))`,
      'giu',
    ),
    VALUE,
  ],
  // Any other mix of letters and digits is an id: usr_8f3, HAT030, gpt-4o, v1.2.3.
  [/(?<![\p{L}\p{N}_])(?=[\p{L}_-]{0,64}\p{N})[\p{L}\p{N}_]+(?:[.-](?=\p{N})[\p{L}\p{N}_]+|-[\p{L}\p{N}_]+)*/gu, VALUE],
  [/#{2,}/g, VALUE],
  [/\s+/gu, ' '],
  // The length of a list differs too.
  [/(#|"…")(?:(?:, ?| |; ?)\1)+/g, '$1'],
];

/**
 * Returns an error text without the parts that differ between occurrences.
 * @returns one line of at most NORMAL_CHARS_MAX characters, with # for a number or an id and "…"
 * for a quoted part; empty for an empty text
 */
export function normalizeError(raw: string): string {
  const said = messageOf(raw.slice(0, ERROR_CHARS_MAX).toWellFormed().trim());
  const hasFields = /^[[{]/.test(said);
  let text = unquoted(said);
  for (const pattern of QUOTED) {
    text = text.replaceAll(pattern, (quoted, colon: string | undefined) =>
      hasFields && colon !== undefined ? quoted : QUOTE + (colon ?? ''),
    );
  }
  for (const [pattern, mark] of RULES) text = text.replaceAll(pattern, mark);
  return text.trim().slice(0, NORMAL_CHARS_MAX).toWellFormed();
}

/**
 * Returns the beginning of a failed span's response without spaces around it, as the store derives
 * it for texts that landed without one.
 * @returns at most ERROR_CHARS_MAX characters
 */
export function errorTextOf(response: string): string {
  let [from, to] = [0, response.length];
  while (from < to && response[from] === ' ') from += 1;
  while (from < to && response[to - 1] === ' ') to -= 1;
  // A character takes up to two units of UTF-16.
  const start = response.slice(from, Math.min(to, from + 2 * ERROR_CHARS_MAX));
  return start.length <= ERROR_CHARS_MAX ? start : Array.from(start).slice(0, ERROR_CHARS_MAX).join('');
}

/** Returns true when attributes may name the error of their span (sql/queries/incidents/error_texts.sql). */
export function namesError(attributes: Readonly<Record<string, unknown>>): boolean {
  return Object.hasOwn(attributes, 'error_message') || Object.hasOwn(attributes, 'error');
}

/** Removes quotes around the whole text. */
function unquoted(text: string): string {
  const inner = /^(["'`])([^"'`]*)\1$/.exec(text)?.[2];
  return inner === undefined ? text : inner.trim();
}

/** Returns the message of an error written as JSON; any other text unchanged. */
function messageOf(text: string): string {
  if (!/^[[{"]/.test(text)) return text;
  try {
    return messageIn(JSON.parse(text), NESTING_MAX) ?? text;
  } catch {
    return text;
  }
}

function messageIn(value: unknown, depth: number): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value.trim();
  if (typeof value !== 'object' || value === null || depth === 0) return null;
  if (Array.isArray(value)) return value.length === 1 ? messageIn(value[0], depth - 1) : null;
  const fields = value as Readonly<Record<string, unknown>>;
  for (const field of MESSAGE_FIELDS) {
    const found = Object.hasOwn(fields, field) ? messageIn(fields[field], depth - 1) : null;
    if (found !== null) return found;
  }
  return null;
}
