// Waiting for a condition, the only way in which tests wait.

/** Long enough for a machine that does much else beside; a test asserts no time. */
const WITHIN_MS = 90_000;
/** A check is often a query of the store: asked again at once for seconds, it would take the processor from what it waits for. */
const PAUSE_FIRST_MS = 10;
const PAUSE_MAX_MS = 100;
const PAUSE_GROWTH = 1.25;

/** Resolves once check gives true; tries it every few milliseconds, later ten times a second. A check that throws or rejects counts as not yet. */
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
