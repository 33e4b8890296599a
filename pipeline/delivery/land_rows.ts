// Inserts one batch of a queue into a table of ClickHouse. A batch with rows that the store rejects
// ends as a PermanentFailure; while the store is unavailable, it is retried.
import { classifyStoreError, type ClickHouse, StoreUnavailable } from '../../sql/client/client.ts';
import { insertRows } from '../../sql/stores/inserts.ts';
import { PermanentFailure } from '../queues/batch_consumer.ts';

/**
 * Longest wait for the tables: on the first start, rows arrive before them. After it, the batch is
 * retried as while the store is unavailable.
 */
const STORE_UP_MS_MAX = 10_000;

export interface LandedBatch<Column extends string> {
  table: string;
  columns: readonly Column[];
  rows: readonly Record<Column, string | number | null>[];
  onLanded: (rows: number, seconds: number) => void;
  /** Resolves when the tables exist; unset where they exist already. */
  storeUp?: Promise<unknown> | undefined;
}

/**
 * Resolves when the tables exist.
 * @throws StoreUnavailable when they do not exist within STORE_UP_MS_MAX
 */
async function whenUp(storeUp: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(late.resolve, STORE_UP_MS_MAX, 'late');
  const first = await Promise.race([storeUp, late.promise]);
  clearTimeout(timer);
  if (first === 'late') throw new StoreUnavailable('the store is still starting');
}

/**
 * Resolves when the rows are on disk.
 * @throws PermanentFailure when the store rejects the rows; StoreUnavailable and other errors while
 * it is unavailable
 */
export async function landRows<Column extends string>(
  clickhouse: ClickHouse,
  { table, columns, rows, onLanded, storeUp }: LandedBatch<Column>,
): Promise<void> {
  if (storeUp !== undefined) await whenUp(storeUp);
  const began = performance.now();
  try {
    await insertRows(clickhouse, { table, columns, rows });
  } catch (error) {
    if (classifyStoreError(error) === 'unavailable') throw error;
    throw new PermanentFailure('ClickHouse rejects the rows', { cause: error });
  }
  onLanded(rows.length, (performance.now() - began) / 1000);
}
