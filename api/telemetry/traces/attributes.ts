// Attributes as an answer shows them. In: the JSON text of the row. Out: an object that JSON.stringify writes as it was
// sent: integers beyond 2^53 keep their digits.

interface RawJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}
/** These have been in the language since ES2026, ahead of the compiler's library. */
const json = JSON as unknown as RawJson;

const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

/** The attributes with span_kind among them; a text that is no object gives span_kind alone. */
export function readAttributes(text: string, kind: string): Record<string, unknown> {
  const value = text === '{}' ? {} : parse(text);
  return { ...(typeof value === 'object' && !Array.isArray(value) ? value : {}), span_kind: kind };
}

function parse(text: string): unknown {
  try {
    return LONG_NUMBER.test(text) ? json.parse(text, keepDigits) : JSON.parse(text);
  } catch {
    return {};
  }
}

function keepDigits(_key: string, value: unknown, { source }: { source?: string }): unknown {
  return typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && INTEGER.test(source)
    ? json.rawJSON(source)
    : value;
}
