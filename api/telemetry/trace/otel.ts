// Reads the events and links of an OpenTelemetry span from its attributes, where decoding put them.
import type { SpanDetail } from './schema.ts';

type Fields = Readonly<Record<string, unknown>>;

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = (value: unknown): Record<string, unknown> => (isFields(value) ? { ...value } : {});
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

/** Returns a list under its own name, or under the name that it has where an attribute took that. */
function listOf(attributes: Fields, name: string): Fields[] {
  const list = attributes[`otel.${name}`] ?? attributes[name];
  return Array.isArray(list) ? (list as unknown[]).filter(isFields) : [];
}

export function eventsOf(attributes: Fields): SpanDetail['events'] {
  return listOf(attributes, 'events').map((event) => ({
    name: textOf(event['name']),
    at: timeOf(event['time_unix_nano']),
    attributes: fieldsOf(event['attributes']),
  }));
}

export function linksOf(attributes: Fields): SpanDetail['links'] {
  return listOf(attributes, 'links').map((link) => ({
    trace_id: textOf(link['trace_id']),
    span_id: textOf(link['span_id']),
    attributes: fieldsOf(link['attributes']),
  }));
}

const DIGITS = /^\d{7,19}$/;
/** Digits of nanoseconds below the millisecond. */
const NANO_DIGITS = 6;

function timeOf(nanos: unknown): string | null {
  const digits = typeof nanos === 'number' ? String(nanos) : nanos;
  return typeof digits === 'string' && DIGITS.test(digits)
    ? new Date(Number(digits.slice(0, -NANO_DIGITS))).toISOString()
    : null;
}
