// Attribute values of OTLP as plain JSON, the same for both encodings. Integers beyond 2^53 and
// non-finite numbers become strings with all their digits, bytes become base64, and a missing value
// becomes null. Takes AnyValue and KeyValue as protobuf or JSON has them; returns JSON values, or
// throws SpanRejected naming the field.
import type { Bits64, WireKeyValue, WireValue } from '../../../schemas/otlp/messages.ts';

/**
 * The reason why a span or a log record is rejected; its neighbours are accepted. Thrown for what they share, it
 * rejects the export.
 */
export class SpanRejected extends Error {}

/** The body is not an export. */
export class InvalidExport extends Error {}

export type Fields = Readonly<Record<string, unknown>>;

/**
 * Maximum number of attributes of one span, event, link, scope or resource, and of events and links
 * of one span. SDKs stop at 128.
 */
export const ITEMS_MAX = 4096;
/** Maximum nesting of lists and objects in one value. */
export const VALUE_DEPTH_MAX = 24;

const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const UINT64_MAX = 2n ** 64n - 1n;
const INTEGER = /^-?\d{1,20}$/;
const DECIMAL = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** No prototype, because a sender may name an attribute __proto__. */
const emptyMap = (): Record<string, unknown> => Object.create(null) as Record<string, unknown>;

function checkCount(count: number, where: string): void {
  if (count > ITEMS_MAX) throw new SpanRejected(`${where}: may hold at most ${ITEMS_MAX}, got ${count}`);
}

function checkDepth(depth: number, where: string): void {
  if (depth > VALUE_DEPTH_MAX) throw new SpanRejected(`${where}: is nested deeper than ${VALUE_DEPTH_MAX} levels`);
}

/**
 * Returns a list of at most ITEMS_MAX.
 * @throws SpanRejected
 */
export function bounded<T>(list: readonly T[], where: string): readonly T[] {
  checkCount(list.length, where);
  return list;
}

/** Returns a signed 64-bit integer as a number where that is exact, as a string otherwise. */
function integer(digits: bigint): number | string {
  return digits >= BigInt(Number.MIN_SAFE_INTEGER) && digits <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(digits)
    : digits.toString();
}

function real(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

// --- protobuf ---

/** Returns the unsigned digits of a fixed64. */
export function wireDigits({ low, high }: Bits64): string {
  return ((BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)).toString();
}

function wireInteger({ low, high }: Bits64): number | string {
  // Nearly all values are small non-negative numbers.
  if (high === 0) return low >>> 0;
  return integer(BigInt.asIntN(64, (BigInt(high >>> 0) << 32n) | BigInt(low >>> 0)));
}

export const hexOf = (bytes: Uint8Array): string => base(bytes, 'hex');

function base(bytes: Uint8Array, encoding: 'hex' | 'base64'): string {
  // A missing field is an empty list rather than a buffer.
  if (bytes.length === 0) return '';
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString(encoding);
}

/** @throws SpanRejected */
export function wireAttributes(list: readonly WireKeyValue[], where: string, depth = 0): Record<string, unknown> {
  checkCount(list.length, where);
  const map = emptyMap();
  for (const { key, value } of list) map[key] = value === null ? null : wireValue(value, where, depth + 1);
  return map;
}

/**
 * Returns the body of a log record.
 * @throws SpanRejected
 */
export const wireBody = (value: WireValue, where: string): unknown => wireValue(value, where, 0);

function wireValue(value: WireValue, where: string, depth: number): unknown {
  // A field that is set is an own property; the prototype holds the defaults.
  if (Object.hasOwn(value, 'stringValue')) return value.stringValue;
  if (Object.hasOwn(value, 'intValue') && value.intValue !== undefined) return wireInteger(value.intValue);
  if (Object.hasOwn(value, 'boolValue')) return value.boolValue;
  if (Object.hasOwn(value, 'doubleValue') && value.doubleValue !== undefined) return real(value.doubleValue);
  if (Object.hasOwn(value, 'bytesValue') && value.bytesValue !== undefined) return base(value.bytesValue, 'base64');
  checkDepth(depth, where);
  if (Object.hasOwn(value, 'arrayValue') && value.arrayValue !== undefined)
    return value.arrayValue.values.map((item) => wireValue(item, where, depth + 1));
  if (Object.hasOwn(value, 'kvlistValue') && value.kvlistValue !== undefined)
    return wireAttributes(value.kvlistValue.values, where, depth);
  return null;
}

// --- JSON ---

/**
 * Returns a list; empty when it is missing.
 * @throws SpanRejected
 */
export function jsonList(value: unknown, where: string): readonly unknown[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new SpanRejected(`${where}: must be a list`);
  return value as unknown[];
}

/**
 * Returns a string; empty when it is missing.
 * @throws SpanRejected
 */
export function jsonText(value: unknown, where: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw new SpanRejected(`${where}: must be a string`);
  // Protobuf strings are always well-formed.
  return value.toWellFormed();
}

/**
 * Returns an unsigned 32-bit number; 0 when it is missing.
 * @throws SpanRejected
 */
export function jsonCount(value: unknown, where: string): number {
  if (value === undefined || value === null) return 0;
  const count = typeof value === 'string' && INTEGER.test(value) ? Number(value) : value;
  if (typeof count !== 'number' || !Number.isInteger(count) || count < 0 || count > 0xffffffff)
    throw new SpanRejected(`${where}: must be an unsigned 32-bit number`);
  return count;
}

/**
 * Returns the number of an enum value, given as a number or as a name that ends with one of
 * `names`.
 * @throws SpanRejected
 */
export function jsonEnum(value: unknown, names: readonly string[], where: string): number {
  if (value === undefined || value === null) return 0;
  if (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 31) return value;
  const index = typeof value === 'string' ? names.findIndex((name) => value.endsWith(`_${name}`)) : -1;
  if (index < 0) throw new SpanRejected(`${where}: must be the number of an enum value`);
  return index;
}

/**
 * Returns the digits of a fixed64, given as a string or a number.
 * @throws SpanRejected
 */
export function jsonDigits(value: unknown, where: string): string {
  if (value === undefined || value === null) return '0';
  const digits = integerOf(value);
  if (digits === null || digits < 0n || digits > UINT64_MAX)
    throw new SpanRejected(`${where}: must be an unsigned 64-bit number`);
  return digits.toString();
}

function integerOf(value: unknown): bigint | null {
  if (typeof value === 'string') return INTEGER.test(value) ? BigInt(value) : null;
  return typeof value === 'number' && Number.isInteger(value) ? BigInt(value) : null;
}

/** @throws SpanRejected */
export function jsonAttributes(list: unknown, where: string, depth = 0): Record<string, unknown> {
  const items = jsonList(list, where);
  checkCount(items.length, where);
  const map = emptyMap();
  for (const item of items) {
    if (!isFields(item)) throw new SpanRejected(`${where}: must hold objects with key and value`);
    const { key, value } = item;
    map[jsonText(key, `${where}.key`)] =
      value === undefined || value === null ? null : jsonValue(value, where, depth + 1);
  }
  return map;
}

/**
 * Returns the body of a log record; null where it has none.
 * @throws SpanRejected
 */
export const jsonBody = (value: unknown, where: string): unknown =>
  value === undefined || value === null ? null : jsonValue(value, where, 0);

function jsonValue(value: unknown, where: string, depth: number): unknown {
  if (!isFields(value)) throw new SpanRejected(`${where}: must hold values such as {"stringValue": "…"}`);
  const { stringValue, intValue, boolValue, doubleValue, bytesValue, arrayValue, kvlistValue } = value;
  if (stringValue !== undefined && stringValue !== null) return jsonText(stringValue, `${where}.stringValue`);
  if (intValue !== undefined && intValue !== null) {
    const digits = integerOf(intValue);
    // OpenTelemetry for JavaScript writes every number without a fraction as an integer, also 1e300.
    if (digits === null || digits < INT64_MIN || digits > INT64_MAX) {
      if (typeof intValue === 'number' && Number.isInteger(intValue)) return intValue;
      throw new SpanRejected(`${where}.intValue: must be a 64-bit number`);
    }
    return integer(digits);
  }
  if (boolValue !== undefined && boolValue !== null) {
    if (typeof boolValue !== 'boolean') throw new SpanRejected(`${where}.boolValue: must be true or false`);
    return boolValue;
  }
  if (doubleValue !== undefined && doubleValue !== null) return jsonReal(doubleValue, where);
  if (bytesValue !== undefined && bytesValue !== null)
    return Buffer.from(jsonText(bytesValue, `${where}.bytesValue`), 'base64').toString('base64');
  checkDepth(depth, where);
  if (arrayValue !== undefined && arrayValue !== null) {
    if (!isFields(arrayValue)) throw new SpanRejected(`${where}.arrayValue: must be an object with values`);
    return jsonList(arrayValue['values'], `${where}.arrayValue`).map((item) =>
      item === null ? null : jsonValue(item, where, depth + 1),
    );
  }
  if (kvlistValue === undefined || kvlistValue === null) return null;
  if (!isFields(kvlistValue)) throw new SpanRejected(`${where}.kvlistValue: must be an object with values`);
  return jsonAttributes(kvlistValue['values'], where, depth);
}

function jsonReal(value: unknown, where: string): number | string {
  if (typeof value === 'number') return value;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return value;
  if (typeof value === 'string' && DECIMAL.test(value)) return real(Number(value));
  throw new SpanRejected(`${where}.doubleValue: must be a number`);
}
