// Reads an export in protobuf, resource by resource and scope by scope, into the shape that both
// encodings share. Takes bytes; returns groups whose spans are read one at a time, or throws
// InvalidExport.
import {
  decodeLogRecord,
  decodeResourceGroup,
  decodeScopeGroup,
  decodeSpan,
  fieldBytes,
  flawOf,
  hasMoreFields,
  METRIC_DATA_FIELDS,
  POINTS_FIELD,
  RECORDS_FIELD,
  RESOURCES_FIELD,
  SCOPES_FIELD,
  type WireScopeGroup,
} from '../../../schemas/otlp/messages.ts';
import type { RecordGroup } from './groups.ts';
import { idOf, parentOf, type ReadLog, type ReadSpan, traceIdOf } from './normal.ts';
import {
  bounded,
  hexOf,
  ITEMS_MAX,
  InvalidExport,
  SpanRejected,
  wireAttributes,
  wireBody,
  wireDigits,
} from './values.ts';

/** Maximum number of attributes, events and links of a span, and its other fields. */
const SPAN_FIELDS_MAX = 3 * ITEMS_MAX + 16;
/** Maximum number of attributes of a log record, and its other fields. */
const LOG_FIELDS_MAX = ITEMS_MAX + 16;

/**
 * Reads an export of any signal: spans, log records and metrics stand in the same nest of fields.
 * @param readRecord returns one record of its bytes
 * @throws InvalidExport, also while the records are read; SpanRejected for a resource or a scope
 */
export function* readProtobuf<T>(bytes: Uint8Array, readRecord: (record: Uint8Array) => T): Generator<RecordGroup<T>> {
  for (const inResource of walked(bytes, RESOURCES_FIELD)) {
    const { resource, schemaUrl } = decoded(() => decodeResourceGroup(inResource));
    const ofResource = {
      attributes: wireAttributes(resource?.attributes ?? [], 'resource.attributes'),
      dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
      schema_url: schemaUrl,
    };
    yield { resource: ofResource, scope: null, records: [] };
    for (const inScope of walked(inResource, SCOPES_FIELD)) {
      const scope = scopeOf(decoded(() => decodeScopeGroup(inScope)));
      yield { resource: ofResource, scope, records: readers(inScope, readRecord) };
    }
  }
}

function* readers<T>(inScope: Uint8Array, readRecord: (record: Uint8Array) => T): Generator<() => T> {
  for (const record of walked(inScope, RECORDS_FIELD)) yield () => readRecord(record);
}

function* walked(bytes: Uint8Array, field: number): Generator<Uint8Array> {
  const messages = fieldBytes(bytes, field);
  for (;;) {
    const next = decoded(() => messages.next());
    if (next.done === true) return;
    yield next.value;
  }
}

function scopeOf({ scope, schemaUrl }: WireScopeGroup): NonNullable<RecordGroup<unknown>['scope']> {
  return {
    name: scope?.name ?? '',
    version: scope?.version ?? '',
    attributes: wireAttributes(scope?.attributes ?? [], 'scope.attributes'),
    dropped_attributes_count: scope?.droppedAttributesCount ?? 0,
    schema_url: schemaUrl,
  };
}

function decoded<T>(decode: () => T): T {
  try {
    return decode();
  } catch (error) {
    const flaw = flawOf(error);
    if (flaw !== null) throw new SpanRejected(flaw, { cause: error });
    throw new InvalidExport('the bytes are not such a message', { cause: error });
  }
}

/** @throws SpanRejected, InvalidExport */
export function protobufSpan(bytes: Uint8Array): ReadSpan {
  if (decoded(() => hasMoreFields(bytes, SPAN_FIELDS_MAX)))
    throw new SpanRejected(`may hold at most ${ITEMS_MAX} attributes, events and links each`);
  const span = decoded(() => decodeSpan(bytes));
  return {
    trace_id: idOf(hexOf(span.traceId), 16, 'traceId'),
    span_id: idOf(hexOf(span.spanId), 8, 'spanId'),
    parent_span_id: parentOf(hexOf(span.parentSpanId), 'parentSpanId'),
    trace_state: span.traceState,
    flags: span.flags,
    name: span.name,
    kind: span.kind,
    start_time_unix_nano: wireDigits(span.startTimeUnixNano),
    end_time_unix_nano: wireDigits(span.endTimeUnixNano),
    attributes: wireAttributes(span.attributes, 'attributes'),
    dropped_attributes_count: span.droppedAttributesCount,
    events: bounded(span.events, 'events').map((event) => ({
      time_unix_nano: wireDigits(event.timeUnixNano),
      name: event.name,
      attributes: wireAttributes(event.attributes, 'events.attributes'),
      dropped_attributes_count: event.droppedAttributesCount,
    })),
    dropped_events_count: span.droppedEventsCount,
    links: bounded(span.links, 'links').map((link) => ({
      trace_id: idOf(hexOf(link.traceId), 16, 'links.traceId'),
      span_id: idOf(hexOf(link.spanId), 8, 'links.spanId'),
      trace_state: link.traceState,
      attributes: wireAttributes(link.attributes, 'links.attributes'),
      dropped_attributes_count: link.droppedAttributesCount,
      flags: link.flags,
    })),
    dropped_links_count: span.droppedLinksCount,
    status: { message: span.status?.message ?? '', code: span.status?.code ?? 0 },
  };
}

/** @throws SpanRejected, InvalidExport */
export function protobufLog(bytes: Uint8Array): ReadLog {
  if (decoded(() => hasMoreFields(bytes, LOG_FIELDS_MAX)))
    throw new SpanRejected(`attributes: may hold at most ${ITEMS_MAX}`);
  const log = decoded(() => decodeLogRecord(bytes));
  return {
    trace_id: traceIdOf(hexOf(log.traceId), 'traceId'),
    span_id: parentOf(hexOf(log.spanId), 'spanId'),
    time_unix_nano: wireDigits(log.timeUnixNano),
    observed_time_unix_nano: wireDigits(log.observedTimeUnixNano),
    severity_number: log.severityNumber,
    severity_text: log.severityText,
    event_name: log.eventName,
    body: log.body === null ? null : wireBody(log.body, 'body'),
    attributes: wireAttributes(log.attributes, 'attributes'),
    dropped_attributes_count: log.droppedAttributesCount,
    flags: log.flags,
  };
}

/**
 * Returns the number of data points of a metric.
 * @throws InvalidExport
 */
export function protobufPoints(bytes: Uint8Array): number {
  let points = 0;
  for (const field of METRIC_DATA_FIELDS)
    for (const data of walked(bytes, field)) for (const _point of walked(data, POINTS_FIELD)) points++;
  return points;
}
