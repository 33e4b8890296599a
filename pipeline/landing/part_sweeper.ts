// Deletes parts that merges have replaced from the disk, when ClickHouse itself falls behind: it
// does so only when a table has nothing to merge, which under load may take twenty minutes and
// several times the disk space. The leader sweeps, and only the embedded server needs it;
// replicated tables have a thread for this.
//
// A deleted part is older than the time for which ClickHouse keeps replaced parts against power
// loss, and the part that replaced it is durable.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';

const LOOK_MS = 15_000;
/** Extra time that ClickHouse gets to delete the parts itself, in seconds. */
const PATIENCE_S = 15;
const STATEMENT_MS_MAX = 60_000;

/**
 * Replaced parts by table. ClickHouse does not delete parts that a reader or a merge still uses.
 */
const DUE = `
  SELECT p.table AS name, toUInt32(count()) AS parts FROM system.parts AS p
  WHERE p.database = currentDatabase() AND NOT p.active AND p.remove_time > 0
    AND dateDiff('second', p.remove_time, now()) > {kept_s:UInt32}
  GROUP BY p.table ORDER BY p.table`;

export interface PartSweeperOptions {
  clickhouse: ClickHouse;
  logger: Logger;
  isLeader: () => boolean;
  /** Resolves once everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** How long ClickHouse keeps replaced parts, in seconds. */
  keptS: number;
  /** Interval of the sweeps in milliseconds; defaults to LOOK_MS. */
  lookMs?: number;
}

/**
 * Starts to sweep at intervals. The function that it returns ends this, and resolves once no sweep
 * is under way.
 */
export function startPartSweeper({
  clickhouse,
  logger,
  isLeader,
  sync,
  keptS,
  lookMs = LOOK_MS,
}: PartSweeperOptions): () => Promise<void> {
  const sweep = async (): Promise<void> => {
    if (!isLeader()) return;
    const due = await clickhouse.rows<{ name: string; parts: number }>({
      name: 'replaced_parts',
      sql: DUE,
      params: { kept_s: keptS + PATIENCE_S },
      timeoutMs: STATEMENT_MS_MAX,
    });
    if (due.length === 0) return;
    await sync();
    for (const { name, parts } of due) {
      // No partition has this id. The statement drops nothing, but deletes replaced parts, as every
      // drop does.
      await clickhouse.execute({
        name: 'sweep_parts',
        sql: 'ALTER TABLE {name:Identifier} DROP PARTITION ID {id:String}',
        params: { name, id: 'none' },
        timeoutMs: STATEMENT_MS_MAX,
      });
      logger.debug({ table: name, parts }, 'replaced parts deleted from the disk');
    }
  };
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= sweep()
      .catch((error: unknown) => {
        logger.debug({ err: error }, 'replaced parts could not be deleted from the disk; trying again');
      })
      .finally(() => {
        running = null;
      });
  }, lookMs);
  return async () => {
    clearInterval(timer);
    await running;
  };
}
