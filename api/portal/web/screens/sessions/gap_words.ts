// The pause between two turns of a session, where it is long enough to matter. Pure.

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Shorter pauses are the pace of a conversation. */
const SAID_FROM_MS = 10 * MINUTE_MS;

/** Returns the pause in words, such as "4 h later", or null for one that is not worth saying. */
export function gapWords(end: string, start: string): string | null {
  const ms = Date.parse(start) - Date.parse(end);
  if (Number.isNaN(ms) || ms < SAID_FROM_MS) return null;
  if (ms < HOUR_MS) return `${Math.round(ms / MINUTE_MS)} min later`;
  if (ms < DAY_MS) return `${Math.round(ms / HOUR_MS)} h later`;
  const days = Math.round(ms / DAY_MS);
  return days === 1 ? '1 day later' : `${days} days later`;
}
