// Reason of a job's failure for the operator: one line without statements and stack traces, which
// go to the logger.
import { ClickHouseError } from '@clickhouse/client';
import { ObjectStoreError } from '../../ops/platform/object_store/object_store.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';

const DETAIL_CHARS_MAX = 300;

/**
 * Returns the reason. `unavailable` is true if a store was unavailable, so that the same run may
 * succeed later.
 */
export function describeFailure(error: unknown): { unavailable: boolean; detail: string } {
  if (error instanceof StoreUnavailable) return { unavailable: true, detail: 'ClickHouse did not answer' };
  if (error instanceof ClickHouseError)
    return { unavailable: false, detail: `ClickHouse rejected a statement (code ${error.code})` };
  const text = error instanceof Error ? error.message : String(error);
  const unavailable = error instanceof ObjectStoreError && error.failure === 'unavailable';
  return { unavailable, detail: (text.split('\n')[0] ?? '').slice(0, DETAIL_CHARS_MAX) };
}
