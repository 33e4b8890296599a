// Makes what the embedded ClickHouse has written survive power loss: one sync of its file system, on demand.
// An insert is some eighty small files; an fsync of each keeps the disk's journal busy and made the log's own syncs, which
// every answer to ingest waits for, six times slower. The log holds everything until a checkpoint, so it is enough that
// rows are on the disk before the checkpoint passes them.
import { execFile } from 'node:child_process';

export interface Syncer {
  /** Resolves when all that was written before the call is on the disk. Calls made meanwhile share the next sync. */
  sync(): Promise<void>;
}

/** Longest that one sync may take before it counts as failed and is tried again with the next checkpoint. */
const SYNC_MS_MAX = 30_000;

const COMMAND: Partial<Record<NodeJS.Platform, (dir: string) => [string, string[]]>> = {
  linux: (dir) => ['sync', ['--file-system', dir]],
  darwin: () => ['sync', []],
};

/**
 * @param dir folder of the engine on this machine
 * @returns null where the system has no such command; inserts have to be synced one by one then
 */
export async function createSyncer(dir: string): Promise<Syncer | null> {
  const command = COMMAND[process.platform]?.(dir);
  if (command === undefined) return null;
  const run = (): Promise<void> =>
    new Promise((resolve, reject) => {
      execFile(command[0], command[1], { timeout: SYNC_MS_MAX }, (error) => {
        if (error === null) resolve();
        else reject(new Error(`sync of ${dir} failed`, { cause: error }));
      });
    });
  try {
    await run();
  } catch {
    return null;
  }
  let running: Promise<void> | null = null;
  let next: Promise<void> | null = null;
  const begin = (): Promise<void> => {
    running = run().finally(() => {
      running = null;
    });
    return running;
  };
  return {
    sync() {
      // What is running may have begun before the caller's write: only the next one covers it.
      if (running === null) return begin();
      next ??= running
        .catch(() => undefined)
        .then(() => {
          next = null;
          return begin();
        });
      return next;
    },
  };
}
