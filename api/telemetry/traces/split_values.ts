/**
 * Splits the value of a query parameter at commas. A comma within a value is written with a
 * backslash before it. Empty values are dropped.
 */
export function splitValues(text: string): string[] {
  const parts = text.match(/(?:\\[^]|[^,\\]|\\$)+/g) ?? [];
  return parts.map((part) => part.replaceAll(/\\([,\\])/g, '$1'));
}
