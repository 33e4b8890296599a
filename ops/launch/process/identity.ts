// Which process a pid is: a pid alone is given again to others, a pid with its start time is not.
// Comes in: a pid. Goes out: a text that no other process of this machine will ever have together with that pid.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** A process as it is written down in a file; started is opaque. */
export interface ProcessIdentity {
  pid: number;
  started: string;
}

/** The start of a living process; null when there is none of that pid. */
export function startOf(pid: number): string | null {
  try {
    if (process.platform === 'linux') {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
      // The command stands in parentheses and may hold spaces: count fields after the last one. State is field 3, start 22.
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

/** Whether that very process still runs. */
export function isAlive({ pid, started }: ProcessIdentity): boolean {
  return startOf(pid) === started;
}
