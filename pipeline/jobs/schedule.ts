// When jobs are due, by node-cron in UTC. A slot is an instant of a job's schedule, a whole minute.
import { createTask } from 'node-cron';

const MINUTE_MS = 60_000;
/** How far back a missed slot is looked for; a schedule rarer than this is not caught up with. */
const BACK_MINUTES_MAX = 8 * 24 * 60;

/**
 * The newest slot that is not after `now`, milliseconds since the epoch; null when there is none within the last days.
 * @throws Error when the expression is none
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

/** Calls back at each slot, with the slot. Returns what stops it. */
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
