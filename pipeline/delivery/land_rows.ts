// One batch of a work queue into its table of ClickHouse. Resolves when the rows are on the disk.
import { classifyStoreError, type ClickHouse } from '../../sql/client/client.ts';
import { NeverPossible } from '../queues/work_queue.ts';

const INSERT_TIMEOUT_MS = 15_000;

export interface LandedBatch<Column extends string> {
  table: string;
  columns: readonly Column[];
  rows: readonly Record<Column, string | number | null>[];
  onLanded: (rows: number, seconds: number) => void;
}

/** @throws NeverPossible when the store refuses the rows for what they are; whatever it throws while it is away */
export async function landRows<Column extends string>(
  clickhouse: ClickHouse,
  { table, columns, rows, onLanded }: LandedBatch<Column>,
): Promise<void> {
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
    throw new NeverPossible('ClickHouse refuses the rows', { cause: error });
  }
  onLanded(rows.length, (performance.now() - began) / 1000);
}
