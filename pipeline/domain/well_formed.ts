// JSON without unpaired UTF-16 surrogates. JSON.stringify writes them as escapes (\ud800), which many parsers refuse and UTF-8
// cannot hold. In: JSON text as JSON.stringify writes it. Out: the same with U+FFFD in their places. Pure.

/** One escape sequence; the first alternative is a surrogate, which JSON.stringify escapes only when it is unpaired. */
const ESCAPE = /\\(?:ud[89a-f][0-9a-f]{2}|[^])/g;
const SURROGATE_ESCAPE_LENGTH = 6;

/**
 * Returns JSON text whose strings and names are all well-formed.
 * @param json as JSON.stringify writes it: surrogates that form a pair stand as the character that they are
 */
export function wellFormedJson(json: string): string {
  if (!json.includes('\\ud')) return json;
  return json.replace(ESCAPE, (escape) => (escape.length === SURROGATE_ESCAPE_LENGTH ? '\ufffd' : escape));
}
