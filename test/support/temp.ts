// Temporary folders of tests.
import { mkdtempSync, readdirSync, rmSync, statfsSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** Creates an empty folder under the system's temporary folder. */
export const tempDir = (name: string): string => mkdtempSync(path.join(tmpdir(), `millrace-${name}-`));

/** Linux's in-memory file system, and the minimum free space there that makes it safe to use. */
const MEMORY = '/dev/shm';
const MEMORY_FREE_MIN_BYTES = 4 * 1024 ** 3;

/**
 * Creates an empty folder in memory if there is enough space, otherwise on disk. For engines of
 * tests that do not simulate a power loss, so that a hundred of them do not wait for one disk.
 * Services that `npm start` starts (test/e2e) write to the disk.
 */
export function memoryDir(name: string): string {
  try {
    const { bavail, bsize } = statfsSync(MEMORY);
    if (process.platform === 'linux' && bavail * bsize >= MEMORY_FREE_MIN_BYTES)
      return mkdtempSync(path.join(MEMORY, `millrace-${name}-`));
  } catch {
    // The in-memory file system is missing or not writable.
  }
  return tempDir(name);
}

/**
 * Age in milliseconds from which a folder counts as left over from a killed test run. Such folders
 * in memory would occupy it until the machine restarts.
 */
const LEFT_MS = 86_400_000;

/** Removes folders in memory that are at least a day old. */
export function removeLeft(): void {
  try {
    for (const name of readdirSync(MEMORY).filter((text) => text.startsWith('millrace-'))) {
      const folder = path.join(MEMORY, name);
      if (statSync(folder).mtimeMs < Date.now() - LEFT_MS) rmSync(folder, { recursive: true, force: true });
    }
  } catch {
    // The in-memory file system is missing, or another user owns a folder in it.
  }
}

/** Removes a folder. Retries while a process that just exited still releases its last files. */
export function removeDir(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
