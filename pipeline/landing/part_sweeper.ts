// Takes parts that merges have replaced off the disk, where the engine itself does not get to it: it does so only when a table has nothing to
// merge, and under load that may take twenty minutes and several times the disk. The leader does it, for the embedded engine alone; a
// replicated table has a thread of its own for this.
// Guarantees: what goes is older than the engine keeps it against power loss, and what took its place is on the disk.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';

const LOOK_MS = 15_000;
/** The engine has had this long, seconds, after it might have taken them away by itself. */
const PATIENCE_S = 15;
const STATEMENT_MS_MAX = 60_000;

/** By table, as each keeps its parts; what a reader or a merge still holds is left out of it by the engine when it is swept. */
const DUE = `
  SELECT p.table AS name, toUInt32(count()) AS parts FROM system.parts AS p
  WHERE p.database = currentDatabase() AND NOT p.active AND p.remove_time > 0
    AND dateDiff('second', p.remove_time, now()) > {kept_s:UInt32}
  GROUP BY p.table ORDER BY p.table`;

export interface PartSweeperOptions {
  clickhouse: ClickHouse;
  logger: Logger;
  isLeader: () => boolean;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** How long the engine keeps replaced parts, seconds. */
  keptS: number;
  /** Milliseconds between two looks. Unset: LOOK_MS. */
  lookMs?: number;
}

/** Begins to look; returns what ends it, which resolves when nothing is under way. */
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
      // No partition has this id. The statement drops nothing, and clears what is replaced, as after every drop.
      await clickhouse.execute({
        name: 'sweep_parts',
        sql: 'ALTER TABLE {name:Identifier} DROP PARTITION ID {id:String}',
        params: { name, id: 'none' },
        timeoutMs: STATEMENT_MS_MAX,
      });
      logger.debug({ table: name, parts }, 'replaced parts are off the disk');
    }
  };
  let running: Promise<void> | null = null;
  const timer = setInterval(() => {
    running ??= sweep()
      .catch((error: unknown) => {
        logger.debug({ err: error }, 'replaced parts could not be taken off the disk; trying again');
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
