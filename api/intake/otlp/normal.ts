// The one shape of a span, and of a log record, in the ingest log, whichever encoding it was sent
// in: the same record gives the same text, and therefore the same event. Fields have a fixed order;
// empty, zero and missing ones are not written.
import type { Fields } from './values.ts';
import { SpanRejected } from './values.ts';

/** A span as both readers return it. They have checked ids and digits. */
export interface ReadSpan {
  trace_id: string;
  span_id: string;
  parent_span_id: string;
  trace_state: string;
  flags: number;
  name: string;
  kind: number;
  start_time_unix_nano: string;
  end_time_unix_nano: string;
  attributes: Fields;
  dropped_attributes_count: number;
  events: readonly ReadEvent[];
  dropped_events_count: number;
  links: readonly ReadLink[];
  dropped_links_count: number;
  status: { message: string; code: number };
}

export interface ReadEvent {
  time_unix_nano: string;
  name: string;
  attributes: Fields;
  dropped_attributes_count: number;
}

export interface ReadLink {
  trace_id: string;
  span_id: string;
  trace_state: string;
  attributes: Fields;
  dropped_attributes_count: number;
  flags: number;
}

/** A log record as both readers return it. They have checked ids and digits; both ids may be empty. */
export interface ReadLog {
  trace_id: string;
  span_id: string;
  time_unix_nano: string;
  observed_time_unix_nano: string;
  severity_number: number;
  severity_text: string;
  event_name: string;
  /** Null where the record has none. */
  body: unknown;
  attributes: Fields;
  dropped_attributes_count: number;
  flags: number;
}

export interface ReadGroup {
  attributes: Fields;
  dropped_attributes_count: number;
  schema_url: string;
  /** Name and version of a scope. */
  name?: string;
  version?: string;
}

const HEX = /^[0-9a-f]*$/;
const ZEROS = /^0*$/;

/**
 * Returns an id of this many bytes in lower-case hex.
 * @throws SpanRejected
 */
export function idOf(hex: string, bytes: number, where: string): string {
  if (hex.length !== bytes * 2 || !HEX.test(hex)) throw new SpanRejected(`${where}: must be ${bytes} bytes`);
  if (ZEROS.test(hex)) throw new SpanRejected(`${where}: must not be all zeros`);
  return hex;
}

/**
 * Returns the id of the parent; empty for a root, whose parent is missing or all zeros.
 * @throws SpanRejected
 */
export function parentOf(hex: string, where: string): string {
  return ZEROS.test(hex) ? '' : idOf(hex, 8, where);
}

/**
 * Returns the trace of a log record; empty for a record outside of any trace, whose id is missing or
 * all zeros.
 * @throws SpanRejected
 */
export function traceIdOf(hex: string, where: string): string {
  return ZEROS.test(hex) ? '' : idOf(hex, 16, where);
}

/** Returns the text of a resource or a scope, which its spans share. */
export function groupText({
  name = '',
  version = '',
  attributes,
  dropped_attributes_count,
  schema_url,
}: ReadGroup): string {
  const group: Record<string, unknown> = {};
  put(group, 'name', name);
  put(group, 'version', version);
  putMap(group, 'attributes', attributes);
  put(group, 'dropped_attributes_count', dropped_attributes_count);
  put(group, 'schema_url', schema_url);
  return JSON.stringify(group);
}

/** Returns the text of a span. */
export function spanText(span: ReadSpan): string {
  const normal: Record<string, unknown> = { trace_id: span.trace_id, span_id: span.span_id };
  put(normal, 'parent_span_id', span.parent_span_id);
  put(normal, 'trace_state', span.trace_state);
  put(normal, 'flags', span.flags);
  normal['name'] = span.name;
  put(normal, 'kind', span.kind);
  normal['start_time_unix_nano'] = span.start_time_unix_nano;
  normal['end_time_unix_nano'] = span.end_time_unix_nano;
  putMap(normal, 'attributes', span.attributes);
  put(normal, 'dropped_attributes_count', span.dropped_attributes_count);
  if (span.events.length > 0) normal['events'] = span.events.map(eventOf);
  put(normal, 'dropped_events_count', span.dropped_events_count);
  if (span.links.length > 0) normal['links'] = span.links.map(linkOf);
  put(normal, 'dropped_links_count', span.dropped_links_count);
  const { message, code } = span.status;
  if (message !== '' || code !== 0) normal['status'] = message === '' ? { code } : { message, code };
  return JSON.stringify(normal);
}

/** Returns the text of a log record. */
export function logText(log: ReadLog): string {
  const normal: Record<string, unknown> = {};
  put(normal, 'trace_id', log.trace_id);
  put(normal, 'span_id', log.span_id);
  if (log.time_unix_nano !== '0') normal['time_unix_nano'] = log.time_unix_nano;
  if (log.observed_time_unix_nano !== '0') normal['observed_time_unix_nano'] = log.observed_time_unix_nano;
  put(normal, 'severity_number', log.severity_number);
  put(normal, 'severity_text', log.severity_text);
  put(normal, 'event_name', log.event_name);
  if (log.body !== null) normal['body'] = log.body;
  putMap(normal, 'attributes', log.attributes);
  put(normal, 'dropped_attributes_count', log.dropped_attributes_count);
  put(normal, 'flags', log.flags);
  return JSON.stringify(normal);
}

function eventOf({ time_unix_nano, name, attributes, dropped_attributes_count }: ReadEvent): Record<string, unknown> {
  const event: Record<string, unknown> = { time_unix_nano, name };
  putMap(event, 'attributes', attributes);
  put(event, 'dropped_attributes_count', dropped_attributes_count);
  return event;
}

function linkOf({
  trace_id,
  span_id,
  trace_state,
  attributes,
  dropped_attributes_count,
  flags,
}: ReadLink): Record<string, unknown> {
  const link: Record<string, unknown> = { trace_id, span_id };
  put(link, 'trace_state', trace_state);
  putMap(link, 'attributes', attributes);
  put(link, 'dropped_attributes_count', dropped_attributes_count);
  put(link, 'flags', flags);
  return link;
}

function put(record: Record<string, unknown>, key: string, value: string | number): void {
  if (value !== '' && value !== 0) record[key] = value;
}

function putMap(record: Record<string, unknown>, key: string, map: Fields): void {
  if (Object.keys(map).length > 0) record[key] = map;
}
