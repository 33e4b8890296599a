// Lock of a data folder, so that it has one supervisor: a lock of the operating system, taken
// through SQLite, which the system releases when its holder dies in any way. There is no stale pid
// file, and of two simultaneous starts one wins.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';

const SQLITE_BUSY = 5;
const RETRY_MS = 50;
/**
 * Time to wait for a holder that keeps running; a holder that is stopping gets STOPPING_WAIT_MS.
 */
const HELD_WAIT_MS = 1500;
const STOPPING_WAIT_MS = 40_000;

const holderShape = z.object({ pid: z.number(), stopping: z.boolean() });

export interface DataLock {
  /** Tells a waiting start that this process is stopping. */
  markStopping(): void;
  release(): void;
}

/**
 * Creates the folder and locks it. Waits for a holder that is already stopping.
 * @param progress called with one line when the start waits
 * @throws Error with one line: the folder is in use, or cannot be used
 */
export async function lockDataDir(dataDir: string, progress: (line: string) => void): Promise<DataLock> {
  try {
    makeDirs(path.join(dataDir, 'run'));
  } catch (error) {
    throw new Error(
      `SERVICE_DATA_DIR: ${dataDir} cannot be created or written: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
  const holderFile = path.join(dataDir, 'run', 'holder.json');
  const began = performance.now();
  let told = false;
  for (;;) {
    const database = tryLock(path.join(dataDir, 'run', 'lock'));
    if (database !== null) {
      const write = (stopping: boolean): void => {
        writeFileSync(holderFile, JSON.stringify({ pid: process.pid, stopping }));
      };
      write(false);
      return {
        markStopping: () => {
          write(true);
        },
        release: () => {
          database.close();
        },
      };
    }
    const holder = readHolder(holderFile);
    const waited = performance.now() - began;
    if (waited > (holder?.stopping === true ? STOPPING_WAIT_MS : HELD_WAIT_MS)) {
      const who = holder === null ? '' : ` (process ${holder.pid})`;
      throw new Error(
        `SERVICE_DATA_DIR: ${dataDir} is in use by another Millrace${who}; stop it, or choose another folder`,
      );
    }
    if (holder?.stopping === true && !told) progress(`Waiting for process ${holder.pid} to stop …`);
    told ||= holder?.stopping === true;
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/**
 * Creates the folders one by one: mkdir with `recursive` never returns where the system fails with
 * ENOENT, as under /proc.
 */
function makeDirs(folder: string): void {
  if (existsSync(folder)) return;
  makeDirs(path.dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Returns the open lock, or null when another process holds it. */
function tryLock(file: string): DatabaseSync | null {
  const database = new DatabaseSync(file, { timeout: 0 });
  try {
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE');
    return database;
  } catch (error) {
    database.close();
    if (error instanceof Error && 'errcode' in error && error.errcode === SQLITE_BUSY) return null;
    throw error;
  }
}

function readHolder(file: string): z.infer<typeof holderShape> | null {
  try {
    return holderShape.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}
