// OTLP exports for tests, in both encodings from one description: JSON as the specification defines
// it, and protobuf with the field numbers of the product's own .proto files, which the integration
// tests check against real exporters.
import { readFileSync } from 'node:fs';
import protobuf from 'protobufjs';

export type OtlpObject = Record<string, unknown>;

function rootOf(file: string): protobuf.Root {
  return protobuf.parse(
    readFileSync(new URL(`../../schemas/otlp/${file}`, import.meta.url), 'utf8'),
    new protobuf.Root(),
  ).root;
}
const root = rootOf('trace_service.proto');
const rpc = rootOf('rpc_status.proto');

const typeOf = (name: string): protobuf.Type => root.lookupType(`opentelemetry.proto.${name}`);

export function asJson(resourceSpans: readonly OtlpObject[]): Buffer {
  return Buffer.from(JSON.stringify({ resourceSpans }));
}

/** Encodes an OTLP/JSON span as protobuf. */
export function spanBytes(span: OtlpObject): Uint8Array {
  const bytes = (hex: unknown): Buffer => Buffer.from(typeof hex === 'string' ? hex : '', 'hex');
  const links = ((span['links'] ?? []) as OtlpObject[]).map((link) => ({
    ...link,
    traceId: bytes(link['traceId']),
    spanId: bytes(link['spanId']),
  }));
  const type = typeOf('Span');
  const ids = {
    traceId: bytes(span['traceId']),
    spanId: bytes(span['spanId']),
    parentSpanId: bytes(span['parentSpanId']),
  };
  return type.encode(type.fromObject({ ...span, ...ids, links })).finish();
}

/** Encodes a length-delimited protobuf field. */
export function field(number: number, bytes: Uint8Array): Buffer {
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.from([(number << 3) | 2, ...length]), bytes]);
}

/** Encodes an export as protobuf. Spans may already be encoded. */
export function asProtobuf(resourceSpans: readonly OtlpObject[]): Buffer {
  const head = (name: string, object: OtlpObject): Uint8Array =>
    typeOf(name).encode(typeOf(name).fromObject(object)).finish();
  const groups = resourceSpans.map(({ scopeSpans, ...resource }) => {
    const scopes = ((scopeSpans ?? []) as OtlpObject[]).map(({ spans, ...scope }) => {
      const each = ((spans ?? []) as (OtlpObject | Uint8Array)[]).map((span) =>
        field(2, span instanceof Uint8Array ? span : spanBytes(span)),
      );
      return field(2, Buffer.concat([head('ScopeSpans', scope), ...each]));
    });
    return field(1, Buffer.concat([head('ResourceSpans', resource), ...scopes]));
  });
  return Buffer.concat(groups);
}

/** Returns one resource with one scope that holds these spans. */
export function exportOf(spans: readonly unknown[], resource: OtlpObject = {}): OtlpObject[] {
  return [
    { resource: { attributes: keyValues(resource) }, scopeSpans: [{ scope: { name: 'test', version: '1' }, spans }] },
  ];
}

/** Returns OTLP attributes for plain values. */
export function keyValues(values: OtlpObject): OtlpObject[] {
  return Object.entries(values).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: unknown): OtlpObject {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'bigint') return { intValue: value.toString() };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return value === null || value === undefined ? {} : { kvlistValue: { values: keyValues(value as OtlpObject) } };
}

/** Returns a span whose ids derive from `index`. */
export function otlpSpan(index: number, attributes: OtlpObject = {}, over: OtlpObject = {}): OtlpObject {
  const now = BigInt(Date.now()) * 1_000_000n;
  return {
    traceId: '5b8efff798038103d269b633813fc60c',
    spanId: (0xeee19b7ec3000000n + BigInt(index)).toString(16),
    name: `span ${index}`,
    kind: 1,
    startTimeUnixNano: (now - 1_000_000_000n).toString(),
    endTimeUnixNano: now.toString(),
    attributes: keyValues(attributes),
    ...over,
  };
}

export function decodeAnswer(bytes: Uint8Array): OtlpObject {
  const type = typeOf('ExportTraceServiceResponse');
  return type.toObject(type.decode(bytes), { longs: Number });
}

/** Decodes a google.rpc.Status and the ErrorInfo in it. */
export function decodeStatus(bytes: Uint8Array): { code: number; message: string; info: OtlpObject } {
  const status = rpc.lookupType('google.rpc.Status');
  const decoded = status.toObject(status.decode(bytes)) as {
    code: number;
    message: string;
    details: { value: Uint8Array }[];
  };
  const info = rpc.lookupType('google.rpc.ErrorInfo');
  return {
    code: decoded.code,
    message: decoded.message,
    info: info.toObject(info.decode(decoded.details[0]?.value ?? new Uint8Array())),
  };
}
