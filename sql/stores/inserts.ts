// Inserts of whole rows as JSON, one object a line, for tables whose columns are what the service
// writes.
import type { ClickHouse } from '../client/client.ts';

const INSERT_TIMEOUT_MS = 15_000;

/** Writes rows of the given columns. Resolves when they are on the disk. */
export async function insertRows<Column extends string>(
  client: ClickHouse,
  { table, columns, rows }: { table: string; columns: readonly Column[]; rows: readonly Record<Column, unknown>[] },
): Promise<void> {
  await client.execute({
    name: `land_${table}`,
    sql: `INSERT INTO ${table} (${columns.join(', ')}) FORMAT JSONEachRow`,
    body: rows.map((row) => JSON.stringify(row)).join('\n'),
    timeoutMs: INSERT_TIMEOUT_MS,
  });
}

/** Writes attempts of webhook deliveries, each a row as JSON. Resolves when they are on the disk. */
export async function insertDeliveries(client: Pick<ClickHouse, 'execute'>, lines: readonly string[]): Promise<void> {
  await client.execute({
    name: 'webhook_log',
    sql: 'INSERT INTO webhook_deliveries FORMAT JSONEachRow',
    body: lines.join('\n'),
    timeoutMs: INSERT_TIMEOUT_MS,
  });
}
