// Temporary folders of tests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** A new empty folder under the system's temporary folder. */
export const tempDir = (name: string): string => mkdtempSync(path.join(tmpdir(), `millrace-${name}-`));

/** Removes it, also while a process that just ended lets go of its last files. */
export function removeDir(folder: string): void {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
}
