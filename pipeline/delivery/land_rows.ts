// One batch of a work queue into its table of ClickHouse. Resolves when the rows are on the disk.
import { classifyStoreError, type ClickHouse, StoreUnavailable } from '../../sql/client/client.ts';
import { PermanentFailure } from '../queues/batch_consumer.ts';

const INSERT_TIMEOUT_MS = 15_000;
/** On the first start the first rows come before their tables. They wait for this long, then come again as while the store is away. */
const STORE_UP_MS_MAX = 10_000;

export interface LandedBatch<Column extends string> {
  table: string;
  columns: readonly Column[];
  rows: readonly Record<Column, string | number | null>[];
  onLanded: (rows: number, seconds: number) => void;
  /** Resolves when the tables exist; unset where they do. */
  storeUp?: Promise<unknown> | undefined;
}

/** @throws StoreUnavailable when the tables do not exist within STORE_UP_MS_MAX */
async function whenUp(storeUp: Promise<unknown>): Promise<void> {
  const late = Promise.withResolvers<'late'>();
  const timer = setTimeout(late.resolve, STORE_UP_MS_MAX, 'late');
  const first = await Promise.race([storeUp, late.promise]);
  clearTimeout(timer);
  if (first === 'late') throw new StoreUnavailable('the store is being brought up');
}

/** @throws PermanentFailure when the store refuses the rows for what they are; whatever it throws while it is away */
export async function landRows<Column extends string>(
  clickhouse: ClickHouse,
  { table, columns, rows, onLanded, storeUp }: LandedBatch<Column>,
): Promise<void> {
  if (storeUp !== undefined) await whenUp(storeUp);
  const began = performance.now();
  try {
    await clickhouse.execute({
      name: `land_${table}`,
      sql: `INSERT INTO ${table} (${columns.join(', ')}) FORMAT JSONEachRow`,
      body: rows.map((row) => JSON.stringify(row)).join('\n'),
      timeoutMs: INSERT_TIMEOUT_MS,
    });
  } catch (error) {
    if (classifyStoreError(error) === 'unavailable') throw error;
    throw new PermanentFailure('ClickHouse refuses the rows', { cause: error });
  }
  onLanded(rows.length, (performance.now() - began) / 1000);
}
