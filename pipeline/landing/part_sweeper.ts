// Deletes parts that merges have replaced from the disk, when ClickHouse itself falls behind: it
// does so only when a table has nothing to merge, which under load may take twenty minutes and
// several times the disk space. The leader sweeps, and only the embedded server needs it;
// replicated tables have a thread for this. A table of which a merge runs is left for the next look:
// the statement would cancel the merge, and one that takes longer than LOOK_MS would never end.
//
// A deleted part is older than the time for which ClickHouse keeps replaced parts against power
// loss, and the part that replaced it is durable.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readReplacedParts, sweepReplacedParts } from '../../sql/stores/engine.ts';

const LOOK_MS = 15_000;
/** Extra time that ClickHouse gets to delete the parts itself, in seconds. */
const PATIENCE_S = 15;

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
    const due = await readReplacedParts(clickhouse, { kept_s: keptS + PATIENCE_S });
    if (due.length === 0) return;
    await sync();
    for (const { name, parts } of due) {
      await sweepReplacedParts(clickhouse, name);
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
