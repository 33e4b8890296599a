// Makes what the embedded ClickHouse has written survive power loss, by one sync of its file system
// on demand. An insert is some eighty small files. An fsync of each keeps the disk's journal busy,
// and made the syncs of the ingest log, which every answer to ingest waits for, six times slower.
// The ingest log holds everything until a checkpoint, so it suffices that rows are on the disk
// before the checkpoint passes them.
import { execFile } from 'node:child_process';
import { loadSyncfs } from './syncfs.ts';

export interface Syncer {
  /**
   * Resolves once everything written before the call is on the disk. Calls made while a sync runs
   * share the next one.
   */
  sync(): Promise<void>;
}

/** Maximum time of one sync. A longer one counts as failed, and the next checkpoint tries again. */
const SYNC_MS_MAX = 30_000;

const COMMAND: Partial<Record<NodeJS.Platform, (dir: string) => [string, string[]]>> = {
  linux: (dir) => ['sync', ['--file-system', dir]],
  darwin: () => ['sync', []],
};

/** Syncs once; rejects if that fails or takes longer than SYNC_MS_MAX. */
type Sync = () => Promise<void>;

/**
 * Returns the syncer of a folder: it calls syncfs where the C library can be called, and runs the
 * command `sync` elsewhere.
 * @param dir folder of the engine on this machine
 * @param native loads the call of syncfs
 * @returns null where the system has neither; every insert has to be synced then
 */
export async function createSyncer(dir: string, native = loadSyncfs): Promise<Syncer | null> {
  return (await usable(() => native(dir, SYNC_MS_MAX))) ?? (await usable(() => commandOf(dir)));
}

/** Returns a syncer if a first sync succeeds. */
async function usable(load: () => Sync | null | Promise<Sync | null>): Promise<Syncer | null> {
  try {
    const sync = await load();
    if (sync === null) return null;
    await sync();
    return sharing(sync);
  } catch {
    return null;
  }
}

function commandOf(dir: string): Sync | null {
  const command = COMMAND[process.platform]?.(dir);
  if (command === undefined) return null;
  return () =>
    new Promise((resolve, reject) => {
      execFile(command[0], command[1], { timeout: SYNC_MS_MAX }, (error) => {
        if (error === null) resolve();
        else reject(new Error(`sync of ${dir} failed`, { cause: error }));
      });
    });
}

/** Runs one sync at a time, which callers share. */
function sharing(run: Sync): Syncer {
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
      // The running sync may have begun before the caller's write; only the next one covers it.
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
