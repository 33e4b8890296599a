// Temporary folders of tests.
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A new empty folder under the system's temporary folder. */
export const tempDir = (name: string): string => mkdtempSync(path.join(tmpdir(), `millrace-${name}-`));

/** Linux's file system in memory, and the room there that makes it safe to use. */
const MEMORY = '/dev/shm';
const MEMORY_FREE_MIN_BYTES = 4 * 1024 ** 3;

/**
 * The same in memory where there is room: for the engines of tests that power no machine off, so that a hundred of them do not wait for
 * one disk. What is started by `npm start` (test/e2e) writes to the disk.
 */
export function memoryDir(name: string): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (process.platform === 'linux' && bavail * bsize >= MEMORY_FREE_MIN_BYTES)
      return mkdtempSync(path.join(MEMORY, `millrace-${name}-`));
  } catch {
    // There is none here, or it is not ours to write to.
  }
  return tempDir(name);
}

/** Runs of tests that were killed leave folders; those in memory would take it until the machine starts anew. */
const LEFT_MS = 86_400_000;

/** Removes those in memory that are a day old. */
export function removeLeft(): void {
  try {
    for (const name of readdirSync(MEMORY).filter((text) => text.startsWith('millrace-'))) {
      const folder = path.join(MEMORY, name);
      if (statSync(folder).mtimeMs < Date.now() - LEFT_MS) rmSync(folder, { recursive: true, force: true });
    }
  } catch {
    // There is no such file system, or another user's folder in it.
  }
}

/** Removes it, also while a process that just ended lets go of its last files. */
export function removeDir(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
