// Protobuf messages of OTLP: decoders of what exporters send, and encoders of the answers.
// Decoders return plain records with camelCase names, as protobufjs does, and map nothing.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';

/** A 64-bit integer as protobufjs returns it. */
export interface Bits64 {
  low: number;
  high: number;
}

export interface WireValue {
  stringValue?: string;
  boolValue?: boolean;
  intValue?: Bits64;
  doubleValue?: number;
  arrayValue?: { values: WireValue[] };
  kvlistValue?: { values: WireKeyValue[] };
  bytesValue?: Uint8Array;
}

/** An attribute; value is null when none is set. */
export interface WireKeyValue {
  key: string;
  value: WireValue | null;
}

export interface WireSpan {
  traceId: Uint8Array;
  spanId: Uint8Array;
  parentSpanId: Uint8Array;
  traceState: string;
  flags: number;
  name: string;
  kind: number;
  startTimeUnixNano: Bits64;
  endTimeUnixNano: Bits64;
  attributes: WireKeyValue[];
  droppedAttributesCount: number;
  events: { timeUnixNano: Bits64; name: string; attributes: WireKeyValue[]; droppedAttributesCount: number }[];
  droppedEventsCount: number;
  links: {
    traceId: Uint8Array;
    spanId: Uint8Array;
    traceState: string;
    attributes: WireKeyValue[];
    droppedAttributesCount: number;
    flags: number;
  }[];
  droppedLinksCount: number;
  status: { message: string; code: number } | null;
}

/** What the spans, log records or metrics of one scope share. */
export interface WireScopeGroup {
  scope: { name: string; version: string; attributes: WireKeyValue[]; droppedAttributesCount: number } | null;
  schemaUrl: string;
}

/** What the spans, log records or metrics of one resource share. */
export interface WireResourceGroup {
  resource: { attributes: WireKeyValue[]; droppedAttributesCount: number } | null;
  schemaUrl: string;
}

export interface WireLogRecord {
  timeUnixNano: Bits64;
  observedTimeUnixNano: Bits64;
  severityNumber: number;
  severityText: string;
  body: WireValue | null;
  attributes: WireKeyValue[];
  droppedAttributesCount: number;
  flags: number;
  traceId: Uint8Array;
  spanId: Uint8Array;
  eventName: string;
}

/** The partial success of any signal: the number of its records that were rejected. */
export interface PartialSuccess {
  rejected: number;
  errorMessage: string;
}

/** google.rpc.Status with a google.rpc.ErrorInfo among its details. */
export interface RpcStatus {
  code: number;
  message: string;
  reason: string;
  domain: string;
  metadata: Readonly<Record<string, string>>;
  /** Seconds of a google.rpc.RetryInfo among the details; undefined for none. */
  retrySeconds?: number;
}

export const ERROR_INFO_TYPE = 'type.googleapis.com/google.rpc.ErrorInfo';
const RETRY_INFO_TYPE = 'type.googleapis.com/google.rpc.RetryInfo';

function typesOf(file: string): (name: string) => protobuf.Type {
  const { root } = protobuf.parse(readFileSync(new URL(file, import.meta.url), 'utf8'), new protobuf.Root());
  root.resolveAll();
  return (name) => root.lookupType(name);
}

const otlp = typesOf('./otlp.proto');
const rpc = typesOf('./rpc_status.proto');
const RESOURCE_GROUP = otlp('opentelemetry.proto.ResourceGroup');
const SCOPE_GROUP = otlp('opentelemetry.proto.ScopeGroup');
const SPAN = otlp('opentelemetry.proto.Span');
const LOG_RECORD = otlp('opentelemetry.proto.LogRecord');
const RESPONSE = otlp('opentelemetry.proto.ExportResponse');
const STATUS = rpc('google.rpc.Status');
const ERROR_INFO = rpc('google.rpc.ErrorInfo');
const RETRY_INFO = rpc('google.rpc.RetryInfo');

/** Number of the field resource_spans, resource_logs or resource_metrics of a request. */
export const RESOURCES_FIELD = 1;
/** Number of the field scope_spans, scope_logs or scope_metrics of a resource. */
export const SCOPES_FIELD = 2;
/** Number of the field spans, log_records or metrics of a scope. */
export const RECORDS_FIELD = 2;
/** Numbers of the fields of a Metric: gauge, sum, histogram, exponential_histogram and summary. */
export const METRIC_DATA_FIELDS: readonly number[] = [5, 7, 9, 10, 11];
/** Number of the field data_points of each of these. */
export const POINTS_FIELD = 1;
const WIRE_TYPE_BITS = 3;
const WIRE_TYPE = 7;
const LENGTH_DELIMITED = 2;

/**
 * Yields the bytes of each message of a repeated field, lazily.
 * @throws Error when the bytes are not a message
 */
export function* fieldBytes(bytes: Uint8Array, field: number): Generator<Uint8Array> {
  const wanted = (field << WIRE_TYPE_BITS) | LENGTH_DELIMITED;
  const reader = protobuf.Reader.create(bytes);
  while (reader.pos < reader.len) {
    const tag = reader.uint32();
    if (tag === wanted) yield reader.bytes();
    else skip(reader, tag);
  }
}

/**
 * Returns true when a message has more fields than `max`; each element of a repeated field counts.
 * @throws Error when the bytes are not a message
 */
export function hasMoreFields(bytes: Uint8Array, max: number): boolean {
  // A field has at least two bytes.
  if (bytes.length <= max * 2) return false;
  const reader = protobuf.Reader.create(bytes);
  let fields = 0;
  while (reader.pos < reader.len && fields <= max) {
    skip(reader, reader.uint32());
    fields++;
  }
  return fields > max;
}

function skip(reader: protobuf.Reader, tag: number): void {
  if (tag >>> WIRE_TYPE_BITS === 0) throw new Error('a field without a number');
  reader.skipType(tag & WIRE_TYPE);
}

/**
 * Decodes a ResourceSpans, ResourceLogs or ResourceMetrics.
 * @throws Error when the bytes are not such a message
 */
export function decodeResourceGroup(bytes: Uint8Array): WireResourceGroup {
  return RESOURCE_GROUP.decode(bytes) as unknown as WireResourceGroup;
}

/**
 * Decodes a ScopeSpans, ScopeLogs or ScopeMetrics.
 * @throws Error when the bytes are not such a message
 */
export function decodeScopeGroup(bytes: Uint8Array): WireScopeGroup {
  return SCOPE_GROUP.decode(bytes) as unknown as WireScopeGroup;
}

/**
 * Returns what is wrong with bytes that are a message but cannot be decoded; null when the bytes
 * are not a message.
 */
export function flawOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  if (error.message === 'max depth exceeded') return 'is nested too deep';
  return 'code' in error && error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA' ? 'holds text that is not UTF-8' : null;
}

/**
 * Decodes a Span.
 * @throws Error when the bytes are not a span
 */
export function decodeSpan(bytes: Uint8Array): WireSpan {
  return SPAN.decode(bytes) as unknown as WireSpan;
}

/**
 * Decodes a LogRecord.
 * @throws Error when the bytes are not a log record
 */
export function decodeLogRecord(bytes: Uint8Array): WireLogRecord {
  return LOG_RECORD.decode(bytes) as unknown as WireLogRecord;
}

/**
 * Encodes the answer to an export of any signal; null when every record was accepted. The three
 * responses have the same field numbers.
 */
export function encodeResponse(partialSuccess: PartialSuccess | null): Uint8Array {
  return RESPONSE.encode(RESPONSE.fromObject(partialSuccess === null ? {} : { partialSuccess })).finish();
}

export function encodeStatus({ code, message, reason, domain, metadata, retrySeconds }: RpcStatus): Uint8Array {
  const value = ERROR_INFO.encode(ERROR_INFO.fromObject({ reason, domain, metadata })).finish();
  const details = [{ typeUrl: ERROR_INFO_TYPE, value }];
  if (retrySeconds !== undefined) {
    const retry = RETRY_INFO.encode(RETRY_INFO.fromObject({ retryDelay: { seconds: retrySeconds } })).finish();
    details.push({ typeUrl: RETRY_INFO_TYPE, value: retry });
  }
  return STATUS.encode(STATUS.fromObject({ code, message, details })).finish();
}
