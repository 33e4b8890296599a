// Schedules of jobs, by node-cron in UTC. A slot is an instant of a job's schedule, a whole minute.
import { createTask } from 'node-cron';

const MINUTE_MS = 60_000;
/** How far back a missed slot is searched; a rarer schedule does not catch up. */
const BACK_MINUTES_MAX = 8 * 24 * 60;

/**
 * Returns the newest slot that is not after `now`, in milliseconds since the epoch; null if there
 * is none within BACK_MINUTES_MAX.
 * @throws Error when the expression is invalid
 */
export function slotBefore(cron: string, now: number): number | null {
  const task = createTask(cron, () => undefined, { timezone: 'UTC' });
  try {
    const last = Math.floor(now / MINUTE_MS) * MINUTE_MS;
    for (let back = 0; back < BACK_MINUTES_MAX; back++) {
      const at = last - back * MINUTE_MS;
      if (task.match(new Date(at))) return at;
    }
    return null;
  } finally {
    void task.destroy();
  }
}

/** Calls `due` with each slot when it begins. Returns a function that stops it. */
export function onSlots(cron: string, due: (slot: number) => void): () => void {
  const task = createTask(
    cron,
    ({ date }) => {
      due(Math.floor(date.getTime() / MINUTE_MS) * MINUTE_MS);
    },
    { timezone: 'UTC', unref: true, suppressMissedWarning: true },
  );
  void task.start();
  return () => {
    void task.destroy();
  };
}
