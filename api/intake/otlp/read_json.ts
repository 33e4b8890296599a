// Reads an export in JSON, resource by resource and scope by scope, into the shape that both
// encodings share. Following the OTLP specification, ids are hex, names camelCase, 64-bit numbers
// strings or numbers, and unknown fields are skipped. Takes bytes; returns groups whose spans are
// read one at a time, or throws InvalidExport.
import { isUtf8 } from 'node:buffer';
import type { RecordGroup } from './groups.ts';
import { idOf, parentOf, type ReadLog, type ReadSpan, traceIdOf } from './normal.ts';
import {
  bounded,
  isFields,
  jsonAttributes,
  jsonBody,
  jsonCount,
  jsonDigits,
  jsonEnum,
  jsonList,
  jsonText,
  InvalidExport,
  SpanRejected,
  type Fields,
} from './values.ts';

const KINDS = ['UNSPECIFIED', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER'];
const CODES = ['UNSET', 'OK', 'ERROR'];
const SEVERITIES = [
  'UNSPECIFIED',
  ...['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'].flatMap((level) =>
    ['', '2', '3', '4'].map((step) => level + step),
  ),
];
/** The fields of a metric that hold its data points. */
const METRIC_DATA = ['gauge', 'sum', 'histogram', 'exponentialHistogram', 'summary'];
/**
 * Matches numbers that may have more digits than a JavaScript number holds. A match within a string
 * costs time and changes nothing.
 */
const LONG_NUMBER = /[:[,]\s*-?\d{16}/;
const INTEGER = /^-?\d+$/;
const INT64_MAX = 2 ** 63;

/** Names of the lists of an export, from the outermost to the records. */
type Lists = readonly [resources: string, scopes: string, records: string];

/**
 * Reads an export of any signal.
 * @param readRecord returns one record of its JSON
 * @throws InvalidExport; SpanRejected for a resource or a scope
 */
export function* readJson<T>(
  bytes: Buffer,
  [resources, scopes, records]: Lists,
  readRecord: (record: unknown) => T,
): Generator<RecordGroup<T>> {
  const body = parsed(bytes);
  if (!isFields(body)) throw new InvalidExport('it is not a JSON object');
  for (const [r, group] of objects(body[resources], resources)) {
    const where = `${resources}[${r}]`;
    const resource = objectOf(group['resource'], `${where}.resource`);
    const ofResource = {
      attributes: jsonAttributes(resource['attributes'], `${where}.resource.attributes`),
      dropped_attributes_count: jsonCount(
        resource['droppedAttributesCount'],
        `${where}.resource.droppedAttributesCount`,
      ),
      schema_url: jsonText(group['schemaUrl'], `${where}.schemaUrl`),
    };
    yield { resource: ofResource, scope: null, records: [] };
    for (const [s, inScope] of objects(group[scopes], `${where}.${scopes}`)) {
      const scope = scopeOf(inScope, `${where}.${scopes}[${s}]`);
      const list = jsonList(inScope[records], `${where}.${scopes}[${s}].${records}`);
      yield { resource: ofResource, scope, records: readers(list, readRecord) };
    }
  }
}

function* readers<T>(records: readonly unknown[], readRecord: (record: unknown) => T): Generator<() => T> {
  for (const record of records) yield () => readRecord(record);
}

function parsed(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) throw new InvalidExport('it is not UTF-8');
  const text = bytes.toString('utf8', bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0);
  try {
    return JSON.parse(text, LONG_NUMBER.test(text) ? keepDigits : undefined) as unknown;
  } catch (cause) {
    throw new InvalidExport('it is not JSON', { cause });
  }
}

/** A 64-bit number that would lose digits stays a string. */
function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  if (typeof value !== 'number' || Number.isSafeInteger(value) || source === undefined) return value;
  return Math.abs(value) <= INT64_MAX && INTEGER.test(source) ? source : value;
}

function* objects(value: unknown, where: string): Generator<[number, Fields]> {
  for (const [index, item] of jsonList(value, where).entries()) yield [index, objectOf(item, `${where}[${index}]`)];
}

function objectOf(value: unknown, where: string): Fields {
  if (value === undefined || value === null) return {};
  if (!isFields(value)) throw new SpanRejected(`${where}: must be an object`);
  return value;
}

function scopeOf(inScope: Fields, where: string): NonNullable<RecordGroup<unknown>['scope']> {
  const scope = objectOf(inScope['scope'], `${where}.scope`);
  return {
    name: jsonText(scope['name'], `${where}.scope.name`),
    version: jsonText(scope['version'], `${where}.scope.version`),
    attributes: jsonAttributes(scope['attributes'], `${where}.scope.attributes`),
    dropped_attributes_count: jsonCount(scope['droppedAttributesCount'], `${where}.scope.droppedAttributesCount`),
    schema_url: jsonText(inScope['schemaUrl'], `${where}.schemaUrl`),
  };
}

const hex = (value: unknown, where: string): string => jsonText(value, where).toLowerCase();

/** @throws SpanRejected */
export function jsonSpan(span: unknown): ReadSpan {
  if (!isFields(span)) throw new SpanRejected('span: must be an object');
  const status = objectOf(span['status'], 'status');
  return {
    trace_id: idOf(hex(span['traceId'], 'traceId'), 16, 'traceId'),
    span_id: idOf(hex(span['spanId'], 'spanId'), 8, 'spanId'),
    parent_span_id: parentOf(hex(span['parentSpanId'], 'parentSpanId'), 'parentSpanId'),
    trace_state: jsonText(span['traceState'], 'traceState'),
    flags: jsonCount(span['flags'], 'flags'),
    name: jsonText(span['name'], 'name'),
    kind: jsonEnum(span['kind'], KINDS, 'kind'),
    start_time_unix_nano: jsonDigits(span['startTimeUnixNano'], 'startTimeUnixNano'),
    end_time_unix_nano: jsonDigits(span['endTimeUnixNano'], 'endTimeUnixNano'),
    attributes: jsonAttributes(span['attributes'], 'attributes'),
    dropped_attributes_count: jsonCount(span['droppedAttributesCount'], 'droppedAttributesCount'),
    events: bounded(jsonList(span['events'], 'events'), 'events').map((item) => {
      const event = objectOf(item, 'events');
      return {
        time_unix_nano: jsonDigits(event['timeUnixNano'], 'events.timeUnixNano'),
        name: jsonText(event['name'], 'events.name'),
        attributes: jsonAttributes(event['attributes'], 'events.attributes'),
        dropped_attributes_count: jsonCount(event['droppedAttributesCount'], 'events.droppedAttributesCount'),
      };
    }),
    dropped_events_count: jsonCount(span['droppedEventsCount'], 'droppedEventsCount'),
    links: bounded(jsonList(span['links'], 'links'), 'links').map((item) => {
      const link = objectOf(item, 'links');
      return {
        trace_id: idOf(hex(link['traceId'], 'links.traceId'), 16, 'links.traceId'),
        span_id: idOf(hex(link['spanId'], 'links.spanId'), 8, 'links.spanId'),
        trace_state: jsonText(link['traceState'], 'links.traceState'),
        attributes: jsonAttributes(link['attributes'], 'links.attributes'),
        dropped_attributes_count: jsonCount(link['droppedAttributesCount'], 'links.droppedAttributesCount'),
        flags: jsonCount(link['flags'], 'links.flags'),
      };
    }),
    dropped_links_count: jsonCount(span['droppedLinksCount'], 'droppedLinksCount'),
    status: {
      message: jsonText(status['message'], 'status.message'),
      code: jsonEnum(status['code'], CODES, 'status.code'),
    },
  };
}

/** @throws SpanRejected */
export function jsonLog(log: unknown): ReadLog {
  if (!isFields(log)) throw new SpanRejected('log record: must be an object');
  return {
    trace_id: traceIdOf(hex(log['traceId'], 'traceId'), 'traceId'),
    span_id: parentOf(hex(log['spanId'], 'spanId'), 'spanId'),
    time_unix_nano: jsonDigits(log['timeUnixNano'], 'timeUnixNano'),
    observed_time_unix_nano: jsonDigits(log['observedTimeUnixNano'], 'observedTimeUnixNano'),
    severity_number: jsonEnum(log['severityNumber'], SEVERITIES, 'severityNumber'),
    severity_text: jsonText(log['severityText'], 'severityText'),
    event_name: jsonText(log['eventName'], 'eventName'),
    body: jsonBody(log['body'], 'body'),
    attributes: jsonAttributes(log['attributes'], 'attributes'),
    dropped_attributes_count: jsonCount(log['droppedAttributesCount'], 'droppedAttributesCount'),
    flags: jsonCount(log['flags'], 'flags'),
  };
}

/**
 * Returns the number of data points of a metric; 0 where it has none.
 * @throws SpanRejected
 */
export function jsonPoints(metric: unknown): number {
  if (!isFields(metric)) throw new SpanRejected('metric: must be an object');
  let points = 0;
  for (const kind of METRIC_DATA) points += jsonList(objectOf(metric[kind], kind)['dataPoints'], kind).length;
  return points;
}
