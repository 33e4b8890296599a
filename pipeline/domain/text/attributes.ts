// Parses the attributes of a row for a response: takes their JSON text, returns an object that
// JSON.stringify writes as it was sent, with all digits of integers beyond 2^53.

interface RawJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
}
/** Part of the language since ES2026, ahead of the compiler's library. */
const json = JSON as unknown as RawJson;

const LONG_NUMBER = /\d{16}/;
const INTEGER = /^-?\d+$/;

/**
 * Returns the attributes with span_kind added; a text that is not an object yields span_kind alone.
 */
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
