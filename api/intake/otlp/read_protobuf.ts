// Reads an export in protobuf, resource by resource and scope by scope, into the shape that both
// encodings share. Takes bytes; returns groups whose spans are read one at a time, or throws
// InvalidExport.
import {
  decodeResourceSpans,
  decodeScopeSpans,
  decodeSpan,
  fieldBytes,
  flawOf,
  hasMoreFields,
  RESOURCE_SPANS_FIELD,
  SCOPE_SPANS_FIELD,
  SPANS_FIELD,
  type WireScopeSpans,
} from '../../../schemas/otlp/messages.ts';
import type { SpanGroup } from './groups.ts';
import { idOf, parentOf, type ReadSpan } from './normal.ts';
import { bounded, hexOf, ITEMS_MAX, InvalidExport, SpanRejected, wireAttributes, wireDigits } from './values.ts';

/** Maximum number of attributes, events and links of a span, and its other fields. */
const SPAN_FIELDS_MAX = 3 * ITEMS_MAX + 16;

/** @throws InvalidExport, also while the spans are read; SpanRejected for a resource or a scope */
export function* readProtobuf(bytes: Uint8Array): Generator<SpanGroup> {
  for (const inResource of walked(bytes, RESOURCE_SPANS_FIELD)) {
    const { resource, schemaUrl } = decoded(() => decodeResourceSpans(inResource));
    const ofResource = {
      attributes: wireAttributes(resource?.attributes ?? [], 'resource.attributes'),
      dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
      schema_url: schemaUrl,
    };
    yield { resource: ofResource, scope: null, spans: [] };
    for (const inScope of walked(inResource, SCOPE_SPANS_FIELD))
      yield { resource: ofResource, scope: scopeOf(decoded(() => decodeScopeSpans(inScope))), spans: readers(inScope) };
  }
}

function* readers(inScope: Uint8Array): Generator<() => ReadSpan> {
  for (const span of walked(inScope, SPANS_FIELD)) yield () => readSpan(span);
}

function* walked(bytes: Uint8Array, field: number): Generator<Uint8Array> {
  const messages = fieldBytes(bytes, field);
  for (;;) {
    const next = decoded(() => messages.next());
    if (next.done === true) return;
    yield next.value;
  }
}

function scopeOf({ scope, schemaUrl }: WireScopeSpans): NonNullable<SpanGroup['scope']> {
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

function readSpan(bytes: Uint8Array): ReadSpan {
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
