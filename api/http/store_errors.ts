// Classifies failures of ClickHouse for callers: unavailable or overloaded (502, retry), or a
// statement of this service that it rejects (500, a bug).
import { ClickHouseError } from '@clickhouse/client';
import { StoreUnavailable } from '../../sql/client/client.ts';

/**
 * Codes of transient failures (src/Common/ErrorCodes.cpp): 60 and 81 a table or database that
 * migrations have not created yet, 159 too slow, 202 too many queries, 209 and 210 network, 236
 * shutting down, 241 memory, 242 read only, 252 too many parts, 279 no connection, 394 cancelled,
 * 425 system error, 439 no thread, 473 deadlock avoided, 516 users not loaded yet, 999 keeper.
 */
const PASSING_CODES = new Set([
  '60',
  '81',
  '159',
  '202',
  '209',
  '210',
  '236',
  '241',
  '242',
  '252',
  '279',
  '394',
  '425',
  '439',
  '473',
  '516',
  '999',
]);
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
]);
const CAUSES_MAX = 5;

/** Returns null for an error that is not a store's. */
export function classifyStoreFailure(error: unknown): 'unavailable' | 'refused' | null {
  let at = error;
  for (let depth = 0; at instanceof Error && depth < CAUSES_MAX; depth++, at = at.cause) {
    if (at instanceof StoreUnavailable) return 'unavailable';
    if (at instanceof ClickHouseError) return PASSING_CODES.has(at.code) ? 'unavailable' : 'refused';
    if ('code' in at && typeof at.code === 'string' && NETWORK_CODES.has(at.code)) return 'unavailable';
    if (at.message === 'Timeout error.' || at.message === 'socket hang up') return 'unavailable';
  }
  return null;
}
