// What a failure of ClickHouse means to a caller: away or overloaded (502, try again), or a statement of ours that it
// refuses (500, a bug). Anything that is not ClickHouse's is neither.
import { ClickHouseError } from '@clickhouse/client';
import { StoreUnavailable } from '../../sql/client/client.ts';

/**
 * Codes that pass by themselves (src/Common/ErrorCodes.cpp): 60 and 81 a table or database that migrations have not made
 * yet, 159 too slow, 202 too many queries, 209 and 210 network, 241 memory, 242 read only, 252 too many parts, 279 no
 * connection, 394 cancelled, 425 system error, 439 no thread, 473 deadlock avoided, 516 users not loaded yet, 999 keeper.
 */
const PASSING_CODES = new Set([
  '60',
  '81',
  '159',
  '202',
  '209',
  '210',
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

/** null when the error is not a store's. */
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
