// Identity of a process: its pid and start time. The system reuses a pid alone; no other process of
// this machine ever has the same pair.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** Process as recorded in a file; `started` is opaque. */
export interface ProcessIdentity {
  pid: number;
  started: string;
}

/** Returns the start of the running process with a pid; null if there is none. */
export function startOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The command is in parentheses and may contain spaces, so fields are counted after the last
      // one. State is field 3, start time 22.
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      if (fields[0] === 'Z' || fields[0] === 'X') return null;
      return `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19] ?? ''}`;
    }
    const started = execFileSync('ps', ['-o', 'lstart=', '-p', String(pid)], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
    return started === '' ? null : started;
  } catch {
    return null;
  }
}

/** Returns true if that very process is still running. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  return startOf(pid) === started;
}
