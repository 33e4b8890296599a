// What an operator is told of a job that failed: the reason in a line, without statements and stacks, which go to the log.
import { ClickHouseError } from '@clickhouse/client';
import { ObjectStoreError } from '../../ops/platform/object_store/object_store.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';

const DETAIL_CHARS_MAX = 300;

/** `unavailable`: a store was away, and the same run may work later. */
export function describeFailure(error: unknown): { unavailable: boolean; detail: string } {
  if (error instanceof StoreUnavailable) return { unavailable: true, detail: 'ClickHouse did not answer' };
  if (error instanceof ClickHouseError)
    return { unavailable: false, detail: `ClickHouse refused a statement (code ${error.code})` };
  const text = error instanceof Error ? error.message : String(error);
  const unavailable = error instanceof ObjectStoreError && error.failure === 'unavailable';
  return { unavailable, detail: (text.split('\n')[0] ?? '').slice(0, DETAIL_CHARS_MAX) };
}
