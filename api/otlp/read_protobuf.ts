// An export in protobuf: its spans, resource by resource and scope by scope, in the shape that both encodings share.
// In: bytes. Out: groups whose spans are read one at a time; NoExport where the bytes are none.
import { decodeRequest, decodeSpan, isTooDeep, type WireScopeSpans } from '../../schemas/otlp/messages.ts';
import type { SpanGroup } from './groups.ts';
import { idOf, parentOf, type ReadSpan } from './normal.ts';
import { bounded, hexOf, NoExport, SpanRefused, wireAttributes, wireDigits } from './values.ts';

/** @throws NoExport, SpanRefused for a resource or a scope; NoExport also while the spans are read */
export function* readProtobuf(bytes: Uint8Array): Generator<SpanGroup> {
  for (const { resource, scopeSpans, schemaUrl } of decoded(() => decodeRequest(bytes))) {
    const ofResource = {
      attributes: wireAttributes(resource?.attributes ?? [], 'resource.attributes'),
      dropped_attributes_count: resource?.droppedAttributesCount ?? 0,
      schema_url: schemaUrl,
    };
    for (const group of scopeSpans) yield { resource: ofResource, scope: scopeOf(group), spans: group.spans.map((span) => () => readSpan(span)) };
  }
}

function scopeOf({ scope, schemaUrl }: WireScopeSpans): SpanGroup['scope'] {
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
    if (isTooDeep(error)) throw new SpanRefused('is nested too deep', { cause: error });
    throw new NoExport('the bytes are no such message', { cause: error });
  }
}

function readSpan(bytes: Uint8Array): ReadSpan {
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
