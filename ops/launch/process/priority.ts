// CPU priority of a child on a busy machine.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/**
 * Sets a nice value above 0 for a child that has just been started as the leader of its own session
 * (detached). A thread inherits the priority of the thread that creates it, so the value must be
 * set before there are any. Where it cannot be set, all processes have the same priority.
 */
export function lowerPriority(pid: number | undefined, nice: number): void {
  if (pid === undefined || nice === 0) return;
  const tries = [
    () => {
      setPriority(pid, nice);
    },
    // Linux may divide CPU time by session first and apply nice values only within one; this file
    // holds the value of the whole session.
    () => {
      writeFileSync(`/proc/${pid}/autogroup`, String(nice));
    },
  ];
  for (const set of tries) {
    try {
      set();
    } catch {
      // The child has already ended, or the system has no such file.
    }
  }
}
