// Takes parts that merges have replaced off the disk, where the engine itself does not get to it: it does so only when a table has nothing to
// merge, and under load that may take twenty minutes and several times the disk. The leader does it, for the embedded engine alone; a
// replicated table has a thread of its own for this.
// Guarantees: what goes is older than the engine keeps it against power loss, and what took its place is on the disk.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readReplacedParts, sweepReplacedParts } from '../../sql/stores/engine.ts';

const LOOK_MS = 15_000;
/** The engine has had this long, seconds, after it might have taken them away by itself. */
const PATIENCE_S = 15;

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
    const due = await readReplacedParts(clickhouse, { kept_s: keptS + PATIENCE_S });
    if (due.length === 0) return;
    await sync();
    for (const { name, parts } of due) {
      await sweepReplacedParts(clickhouse, name);
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
