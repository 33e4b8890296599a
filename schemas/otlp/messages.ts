// The messages of OTLP/HTTP as they are on the wire: decoders of what exporters send, encoders of what they are answered.
// In: protobuf bytes. Out: plain records with camelCase names, as protobufjs gives them. Maps nothing.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';

/** 64 bits as protobufjs has them. */
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

/** Of what has no value set, value is null. */
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

interface WireScope {
  name: string;
  version: string;
  attributes: WireKeyValue[];
  droppedAttributesCount: number;
}

export interface WireScopeSpans {
  scope: WireScope | null;
  /** Of each span its bytes: decodeSpan. */
  spans: Uint8Array[];
  schemaUrl: string;
}

export interface WireResourceSpans {
  resource: { attributes: WireKeyValue[]; droppedAttributesCount: number } | null;
  scopeSpans: WireScopeSpans[];
  schemaUrl: string;
}

export interface PartialSuccess {
  rejectedSpans: number;
  errorMessage: string;
}

/** google.rpc.Status with a google.rpc.ErrorInfo among its details. */
export interface RpcStatus {
  code: number;
  message: string;
  reason: string;
  domain: string;
  metadata: Readonly<Record<string, string>>;
}

export const ERROR_INFO_TYPE = 'type.googleapis.com/google.rpc.ErrorInfo';

function typesOf(file: string): (name: string) => protobuf.Type {
  const { root } = protobuf.parse(readFileSync(new URL(file, import.meta.url), 'utf8'), new protobuf.Root());
  root.resolveAll();
  return (name) => root.lookupType(name);
}

const otlp = typesOf('./trace_service.proto');
const rpc = typesOf('./rpc_status.proto');
const REQUEST = otlp('opentelemetry.proto.ExportTraceServiceRequest');
const SPAN = otlp('opentelemetry.proto.Span');
const RESPONSE = otlp('opentelemetry.proto.ExportTraceServiceResponse');
const STATUS = rpc('google.rpc.Status');
const ERROR_INFO = rpc('google.rpc.ErrorInfo');

/** @throws Error when the bytes are no such message */
export function decodeRequest(bytes: Uint8Array): WireResourceSpans[] {
  return (REQUEST.decode(bytes) as unknown as { resourceSpans: WireResourceSpans[] }).resourceSpans;
}

/** Whether decoding failed because messages are nested deeper than the parser goes, and not because they are none. */
export function isTooDeep(error: unknown): boolean {
  return error instanceof Error && error.message === 'max depth exceeded';
}

/** @throws Error when the bytes are no span */
export function decodeSpan(bytes: Uint8Array): WireSpan {
  return SPAN.decode(bytes) as unknown as WireSpan;
}

/** The answer to an export; null where every span was taken. */
export function encodeResponse(partialSuccess: PartialSuccess | null): Uint8Array {
  return RESPONSE.encode(RESPONSE.fromObject(partialSuccess === null ? {} : { partialSuccess })).finish();
}

export function encodeStatus({ code, message, reason, domain, metadata }: RpcStatus): Uint8Array {
  const value = ERROR_INFO.encode(ERROR_INFO.fromObject({ reason, domain, metadata })).finish();
  return STATUS.encode(STATUS.fromObject({ code, message, details: [{ typeUrl: ERROR_INFO_TYPE, value }] })).finish();
}
