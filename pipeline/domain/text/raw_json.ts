// Parses JSON without rounding: integers beyond 2^53 keep their digits as sent. In: JSON text. Out:
// its value, in which such numbers are raw JSON that JSON.stringify writes unchanged. Pure.
interface RawJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
}
/** Part of the language since ES2026, but not yet of the compiler's library. */
const json = JSON as unknown as RawJson;

/** A number that keeps its digits as sent. */
export function isRawJson(value: object): value is { rawJSON: string } {
  return json.isRawJSON(value);
}

/**
 * Returns the value of a JSON text, integers beyond 2^53 with all their digits; undefined when it
 * is not JSON.
 */
export function parsedJson(text: string): unknown {
  try {
    return json.parse(text, (_key, value, { source }) =>
      typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined ? json.rawJSON(source) : value,
    );
  } catch {
    return undefined;
  }
}
