// Child processes: how one ended, and how to stop one.
import type { ChildProcess } from 'node:child_process';

/** End of a process: an exit code, or the signal that killed it. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** Resolves when the child has ended, or could not be started at all (code 127). */
export function exitOf(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => {
    child.once('exit', (code, signal) => {
      resolve({ code, signal });
    });
    child.once('error', () => {
      if (child.pid === undefined) resolve({ code: 127, signal: null });
    });
  });
}

/** Returns true if the child has ended or never started. */
export const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

/**
 * Terminates the child, and kills it if it has not ended within waitMs. Resolves when it has ended.
 */
export async function stopChild(child: ChildProcess, exited: Promise<Exit>, waitMs: number): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), waitMs);
  await exited;
  clearTimeout(timer);
}

/** Returns one phrase for a log line. */
export const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `exit code ${String(code)}` : `signal ${signal}`;
