// Times as a field of the type datetime-local holds them, in the person's zone or in UTC.

/** Returns the text of the field for a time in ISO 8601. */
export function fieldTime(time: string | null, zone: 'local' | 'utc'): string {
  if (time === null) return '';
  const at = new Date(time);
  const shift_ms = zone === 'utc' ? 0 : at.getTimezoneOffset() * 60_000;
  return new Date(at.getTime() - shift_ms).toISOString().slice(0, 19);
}

/** Returns the time in ISO 8601 for the text of the field, or null for an empty or unfinished one. */
export function timeOfField(text: string, zone: 'local' | 'utc'): string | null {
  if (text === '') return null;
  const ms = Date.parse(zone === 'utc' ? `${text}Z` : text);
  return Number.isNaN(ms) ? null : new Date(ms).toISOString();
}
