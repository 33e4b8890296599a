// How much of a busy machine a child gets beside the others.
import { writeFileSync } from 'node:fs';
import { setPriority } from 'node:os';

/**
 * Lets a child that has just been started, as the leader of a session of its own (detached), give way to others by a nice value above 0.
 * Threads have the priority of the one that makes them, so it has to be set before there are any. Where it cannot be set all go on as equals.
 */
export function lowerPriority(pid: number | undefined, nice: number): void {
  if (pid === undefined || nice === 0) return;
  const tries = [
    () => {
      setPriority(pid, nice);
    },
    // Linux may share out time by session first, and then heeds nice values only within one; a session's own stands here.
    () => {
      writeFileSync(`/proc/${String(pid)}/autogroup`, String(nice));
    },
  ];
  for (const set of tries) {
    try {
      set();
    } catch {
      // It has ended already, or the system has no such thing.
    }
  }
}
