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
const root = rootOf('otlp.proto');
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
      return field(2, Buffer.concat([head('ScopeGroup', scope), ...each]));
    });
    return field(1, Buffer.concat([head('ResourceGroup', resource), ...scopes]));
  });
  return Buffer.concat(groups);
}

/** Encodes log records as an export in protobuf, with one resource and one scope. */
export function logsAsProtobuf(records: readonly OtlpObject[], resource: OtlpObject = {}): Buffer {
  const bytes = (hex: unknown): Buffer => Buffer.from(typeof hex === 'string' ? hex : '', 'hex');
  const type = typeOf('LogRecord');
  const encoded = records.map((record) =>
    field(
      2,
      type
        .encode(type.fromObject({ ...record, traceId: bytes(record['traceId']), spanId: bytes(record['spanId']) }))
        .finish(),
    ),
  );
  const head = (name: string, object: OtlpObject): Uint8Array =>
    typeOf(name).encode(typeOf(name).fromObject(object)).finish();
  const scope = field(2, Buffer.concat([head('ScopeGroup', { scope: { name: 'test', version: '1' } }), ...encoded]));
  return field(1, Buffer.concat([head('ResourceGroup', { resource: { attributes: keyValues(resource) } }), scope]));
}

/** Encodes log records as an export in JSON, with one resource and one scope. */
export function logsAsJson(logRecords: readonly OtlpObject[], resource: OtlpObject = {}): Buffer {
  const scopeLogs = [{ scope: { name: 'test', version: '1' }, logRecords }];
  return Buffer.from(JSON.stringify({ resourceLogs: [{ resource: { attributes: keyValues(resource) }, scopeLogs }] }));
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

/** Returns the AnyValue of a plain value. */
export function anyValue(value: unknown): OtlpObject {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'bigint') return { intValue: value.toString() };
  if (typeof value === 'number')
    return Number.isInteger(value) ? { intValue: integerOf(value) } : { doubleValue: value };
  if (Array.isArray(value)) return { arrayValue: { values: value.map(anyValue) } };
  return value === null || value === undefined ? {} : { kvlistValue: { values: keyValues(value as OtlpObject) } };
}

/** Returns digits, or the number itself if it exceeds 64 bits, as OpenTelemetry for JavaScript writes it. */
const integerOf = (value: number): string | number => (Math.abs(value) < 2 ** 63 ? String(value) : value);

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

/**
 * Decodes the answer to an export.
 * @param rejected name of the number of rejected records, which depends on the signal
 */
export function decodeAnswer(bytes: Uint8Array, rejected = 'rejectedSpans'): OtlpObject {
  const type = typeOf('ExportResponse');
  const { partialSuccess } = type.toObject(type.decode(bytes), { longs: Number }) as {
    partialSuccess?: { rejected?: number; errorMessage?: string };
  };
  if (partialSuccess === undefined) return {};
  const { rejected: count, ...rest } = partialSuccess;
  return { partialSuccess: { ...(count === undefined ? {} : { [rejected]: count }), ...rest } };
}

/** Decodes a google.rpc.Status, the ErrorInfo in it, and the seconds of its RetryInfo. */
export function decodeStatus(bytes: Uint8Array): {
  code: number;
  message: string;
  info: OtlpObject;
  retry_seconds?: number;
} {
  const status = rpc.lookupType('google.rpc.Status');
  const decoded = status.toObject(status.decode(bytes)) as {
    code: number;
    message: string;
    details: { value: Uint8Array }[];
  };
  const info = rpc.lookupType('google.rpc.ErrorInfo');
  const retry = rpc.lookupType('google.rpc.RetryInfo');
  const [first, second] = decoded.details;
  const delay = second === undefined ? {} : retry.toObject(retry.decode(second.value), { longs: Number });
  const seconds = (delay['retryDelay'] as { seconds?: number } | undefined)?.seconds;
  return {
    code: decoded.code,
    message: decoded.message,
    info: info.toObject(info.decode(first?.value ?? new Uint8Array())),
    ...(seconds === undefined ? {} : { retry_seconds: seconds }),
  };
}
