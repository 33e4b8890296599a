// Child processes: how one ended, and how to end one.
import type { ChildProcess } from 'node:child_process';

/** How a process ended: a code, or the signal that ended it. */
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

/** Whether it runs no more, or never did. */
export const hasEnded = (child: ChildProcess): boolean =>
  child.pid === undefined || child.exitCode !== null || child.signalCode !== null;

/** Asks the child to end, and kills it when it has not within waitMs. Resolves when it is gone. */
export async function stopChild(child: ChildProcess, exited: Promise<Exit>, waitMs: number): Promise<void> {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), waitMs);
  await exited;
  clearTimeout(timer);
}

/** One phrase for a log line. */
export const describeExit = ({ code, signal }: Exit): string =>
  signal === null ? `exit code ${String(code)}` : `signal ${signal}`;
