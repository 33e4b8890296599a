// What the formats of an import have in common: each line becomes pieces of the body of a request.
import { createHash } from 'node:crypto';

/** An endpoint that takes a list of pieces. */
export interface Target {
  path: string;
  /** Text of a body before its first piece; pieces are joined by commas. */
  open: string;
  close: string;
  /** Pieces of one body. */
  piecesMax: number;
}

export interface Piece {
  target: Target;
  /** JSON. */
  text: string;
  /** Number of spans or log records. */
  records: number;
}

/** A line that is not imported, and why. */
export class NotImported extends Error {}

export type Fields = Readonly<Record<string, unknown>>;

export const TRACES: Target = { path: '/v1/traces', open: '{"resourceSpans":[', close: ']}', piecesMax: 1000 };
export const LOGS: Target = { path: '/v1/logs', open: '{"resourceLogs":[', close: ']}', piecesMax: 1000 };
export const LANGSMITH: Target = { path: '/langsmith/runs/batch', open: '{"post":[', close: ']}', piecesMax: 200 };

export const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const digest = (text: string, length: number): string =>
  createHash('sha256').update(text).digest('hex').slice(0, length);

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d{0,9})?(Z|[+-]\d\d:?\d\d)?$/;

/** Returns nanoseconds since the epoch of a time in ISO 8601, or as ClickHouse writes it in UTC; null for anything else. */
export function nanosOf(value: unknown): bigint | null {
  const found = typeof value === 'string' ? TIME.exec(value) : null;
  if (found === null) return null;
  const [, day = '', time = '', fraction = '', zone = 'Z'] = found;
  const ms = Date.parse(`${day}T${time}${zone}`);
  return Number.isNaN(ms) ? null : BigInt(ms) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}
