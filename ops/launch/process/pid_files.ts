// Records of the processes of a data folder, one small file each, so that the next start finds what
// a killed supervisor left running.
import { readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { type ProcessIdentity, isAlive, startOf } from './identity.ts';

const SUFFIX = '.pid.json';
const TERM_WAIT_MS = 15_000;
const KILL_WAIT_MS = 5000;
const POLL_MS = 20;

const shape = z.object({ pid: z.number().int().positive(), started: z.string() });

/** Records a running process. */
export function recordProcess(runDir: string, name: string, pid: number): void {
  const started = startOf(pid);
  if (started !== null) writeFileSync(path.join(runDir, `${name}${SUFFIX}`), JSON.stringify({ pid, started }));
}

export function forgetProcess(runDir: string, name: string): void {
  rmSync(path.join(runDir, `${name}${SUFFIX}`), { force: true });
}

/**
 * Stops processes that an earlier supervisor left running, group by group. Each process is
 * terminated first, and killed if it does not end.
 * @returns the names of those that were still running
 */
export async function stopLeftovers(runDir: string, groups: readonly (readonly string[])[]): Promise<string[]> {
  const known = new Map(
    readdirSync(runDir)
      .filter((file) => file.endsWith(SUFFIX))
      .map((file) => [file.slice(0, -SUFFIX.length), read(path.join(runDir, file))] as const),
  );
  const stopped: string[] = [];
  for (const group of groups) {
    await Promise.all(
      group.map(async (name) => {
        const identity = known.get(name);
        if (identity !== null && identity !== undefined && isAlive(identity)) {
          stopped.push(name);
          await end(identity);
        }
        forgetProcess(runDir, name);
      }),
    );
  }
  return stopped;
}

function read(file: string): ProcessIdentity | null {
  try {
    return shape.parse(JSON.parse(readFileSync(file, 'utf8')));
  } catch {
    return null;
  }
}

async function end(identity: ProcessIdentity): Promise<void> {
  for (const [signal, waitMs] of [
    ['SIGTERM', TERM_WAIT_MS],
    ['SIGKILL', KILL_WAIT_MS],
  ] as const) {
    try {
      process.kill(identity.pid, signal);
    } catch {
      return;
    }
    const deadline = performance.now() + waitMs;
    while (isAlive(identity) && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, POLL_MS));
    if (!isAlive(identity)) return;
  }
  throw new Error(`process ${identity.pid}, left by an earlier start, does not end`);
}
