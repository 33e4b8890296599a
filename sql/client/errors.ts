// Errors of ClickHouse, classified: either the store is unavailable and a retry may help, or it
// refuses the data and no retry helps.
import { ClickHouseError } from '@clickhouse/client';
import { UnencodableCell } from './native_block.ts';

/**
 * The store is unreachable or overloaded, or did not answer in time. A later attempt may succeed.
 */
export class StoreUnavailable extends Error {}

/** The store did not answer a statement within its timeout. */
class ReadTimeout extends StoreUnavailable {}

/**
 * Error codes that blame the data, independent of sender and time (src/Common/ErrorCodes.cpp): 6
 * CANNOT_PARSE_TEXT, 25 CANNOT_PARSE_ESCAPE_SEQUENCE, 26 and 27 input assertions, 38 and 41 dates,
 * 53 TYPE_MISMATCH, 69 ARGUMENT_OUT_OF_BOUND, 70 CANNOT_CONVERT_TYPE, 72 numbers, 117
 * INCORRECT_DATA, 131 TOO_LARGE_STRING_SIZE, 321 VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE, 349 NULL in a
 * column, 407 DECIMAL_OVERFLOW, 467 CANNOT_PARSE_BOOL. Every other failure is retried: a row is
 * dead-lettered only for its own content.
 */
const REFUSED_CODES = new Set([
  '6',
  '25',
  '26',
  '27',
  '38',
  '41',
  '53',
  '69',
  '70',
  '72',
  '117',
  '131',
  '321',
  '349',
  '407',
  '467',
]);

/** VIOLATED_CONSTRAINT: the only constraint of tables is that a landing has the epochs of the newest fences. */
const FENCED_CODE = '469';

/**
 * Returns `refused` when the rows are at fault and must not be sent again, `fenced` when the writer of a
 * landing is not the owner of all their partitions, and `unavailable` for any other failure.
 */
export function classifyStoreError(error: unknown): 'unavailable' | 'refused' | 'fenced' {
  if (error instanceof UnencodableCell) return 'refused';
  if (!(error instanceof ClickHouseError)) return 'unavailable';
  if (error.code === FENCED_CODE) return 'fenced';
  return REFUSED_CODES.has(error.code) ? 'refused' : 'unavailable';
}

/**
 * Returns true when the store cut an answer off because it exceeded the read's bytesMax (396
 * TOO_MANY_ROWS_OR_BYTES).
 */
export function isTooLarge(error: unknown): boolean {
  return error instanceof ClickHouseError && error.code === '396';
}

/** 159 TIMEOUT_EXCEEDED, 202 TOO_MANY_SIMULTANEOUS_QUERIES, 241 MEMORY_LIMIT_EXCEEDED. */
const EXHAUSTED_CODES = new Set(['159', '202', '241']);

/**
 * Returns true when the store had too little time, memory or room for a statement. A smaller read,
 * or the same read later, may succeed.
 */
export function isExhausted(error: unknown): boolean {
  if (error instanceof ReadTimeout) return true;
  return error instanceof ClickHouseError && EXHAUSTED_CODES.has(error.code);
}

/**
 * Returns the error that a failed statement throws: the store's own errors and the caller's abort
 * pass unchanged.
 */
export function explained(
  error: unknown,
  name: string,
  timeout: AbortSignal,
  timeoutMs: number,
  signal: AbortSignal | undefined,
): unknown {
  if (timeout.aborted) return new ReadTimeout(`${name}: no answer within ${timeoutMs} ms`, { cause: error });
  if (error instanceof ClickHouseError || signal?.aborted === true) return error;
  return new StoreUnavailable(`${name}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
}

const CLOSED_CODES: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE']);
const UNREACHABLE_CODES: ReadonlySet<unknown> = new Set([
  ...CLOSED_CODES,
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ETIMEDOUT',
]);

/** Returns true if a server could not be reached, or closed the connection before it answered. */
export const isClosed = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && UNREACHABLE_CODES.has(error.code);

/**
 * Runs a read whose answer begins when `run` resolves, and runs it again if the connection closed
 * before: the store closes idle connections, and may do so just as a read is sent on one. A read
 * changes nothing, so it may arrive twice.
 */
export async function onceMoreIfStale<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (error) {
    if (error instanceof Error && 'code' in error && CLOSED_CODES.has(error.code)) return run();
    throw error;
  }
}
