// Waiting for a condition, the only way in which tests wait.

/** Long enough for a machine under heavy load. Tests make no assertions about time. */
const WITHIN_MS = 90_000;
/**
 * First pause between two checks; it grows up to PAUSE_MAX_MS. A check is often a query of the
 * store: without pauses it would use the CPU that the awaited work needs.
 */
const PAUSE_FIRST_MS = 10;
const PAUSE_MAX_MS = 100;
const PAUSE_GROWTH = 1.25;

/**
 * Resolves once `check` returns true. Checks every few milliseconds at first, later ten times a
 * second. A check that throws or rejects counts as false.
 */
export async function eventually(
  check: () => boolean | Promise<boolean>,
  options: { withinMs?: number; what?: string } = {},
): Promise<void> {
  const withinMs = options.withinMs ?? WITHIN_MS;
  const deadline = performance.now() + withinMs;
  let last: unknown = null;
  for (let pauseMs = PAUSE_FIRST_MS; ; pauseMs = Math.min(pauseMs * PAUSE_GROWTH, PAUSE_MAX_MS)) {
    try {
      if (await check()) return;
      last = null;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline)
      throw new Error(`${options.what ?? 'the condition'} did not come true within ${withinMs} ms`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/**
 * Limit of attempts, and the pause between them in milliseconds. The log confirms within a second
 * or never.
 */
const CONFIRM_TRIES_MAX = 10;
const CONFIRM_PAUSE_MS = 200;

/**
 * Sends a request and retries on 502, as clients do. The contract allows a 502 when a confirmation
 * is late, as happens on a busy machine.
 * @param isLate returns true for an answer to retry; default: every 502
 * @returns the first answer that is not late, or the last one
 */
export async function confirmed<T extends { status: number }>(
  send: () => Promise<T>,
  isLate: (answer: T) => boolean = ({ status }) => status === 502,
): Promise<T> {
  let answer = await send();
  for (let tries = 1; isLate(answer) && tries < CONFIRM_TRIES_MAX; tries++) {
    await new Promise((resolve) => setTimeout(resolve, CONFIRM_PAUSE_MS));
    answer = await send();
  }
  return answer;
}
