// Reads an export in JSON, resource by resource and scope by scope, into the shape that both
// encodings share. Following the OTLP specification, ids are hex, names camelCase, 64-bit numbers
// strings or numbers, and unknown fields are skipped. Takes bytes; returns groups whose spans are
// read one at a time, or throws InvalidExport.
import { isUtf8 } from 'node:buffer';
import type { SpanGroup } from './groups.ts';
import { idOf, parentOf, type ReadSpan } from './normal.ts';
import {
  bounded,
  isFields,
  jsonAttributes,
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
/**
 * Matches numbers that may have more digits than a JavaScript number holds. A match within a string
 * costs time and changes nothing.
 */
const LONG_NUMBER = /[:[,]\s*-?\d{16}/;
const INTEGER = /^-?\d+$/;

/** @throws InvalidExport; SpanRejected for a resource or a scope */
export function* readJson(bytes: Buffer): Generator<SpanGroup> {
  const body = parsed(bytes);
  if (!isFields(body)) throw new InvalidExport('it is not a JSON object');
  for (const [r, group] of objects(body['resourceSpans'], 'resourceSpans')) {
    const where = `resourceSpans[${r}]`;
    const resource = objectOf(group['resource'], `${where}.resource`);
    const ofResource = {
      attributes: jsonAttributes(resource['attributes'], `${where}.resource.attributes`),
      dropped_attributes_count: jsonCount(
        resource['droppedAttributesCount'],
        `${where}.resource.droppedAttributesCount`,
      ),
      schema_url: jsonText(group['schemaUrl'], `${where}.schemaUrl`),
    };
    yield { resource: ofResource, scope: null, spans: [] };
    for (const [s, inScope] of objects(group['scopeSpans'], `${where}.scopeSpans`)) {
      const scope = scopeOf(inScope, `${where}.scopeSpans[${s}]`);
      const spans = jsonList(inScope['spans'], `${where}.scopeSpans[${s}].spans`);
      yield { resource: ofResource, scope, spans: readers(spans) };
    }
  }
}

function* readers(spans: readonly unknown[]): Generator<() => ReadSpan> {
  for (const span of spans) yield () => readSpan(span);
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

/** A number that would lose digits stays a string. */
function keepDigits(_key: string, value: unknown, context?: { source?: string }): unknown {
  const source = context?.source;
  return typeof value === 'number' && !Number.isSafeInteger(value) && source !== undefined && INTEGER.test(source)
    ? source
    : value;
}

function* objects(value: unknown, where: string): Generator<[number, Fields]> {
  for (const [index, item] of jsonList(value, where).entries()) yield [index, objectOf(item, `${where}[${index}]`)];
}

function objectOf(value: unknown, where: string): Fields {
  if (value === undefined || value === null) return {};
  if (!isFields(value)) throw new SpanRejected(`${where}: must be an object`);
  return value;
}

function scopeOf(inScope: Fields, where: string): NonNullable<SpanGroup['scope']> {
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

function readSpan(span: unknown): ReadSpan {
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
