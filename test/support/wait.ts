// Waiting for a condition, the only way in which tests wait.

/** Long enough for a machine that does much else beside; a test asserts no time. */
const WITHIN_MS = 30_000;

/** Resolves once check gives true; tries it every few milliseconds. A check that throws or rejects counts as not yet. */
export async function eventually(
  check: () => boolean | Promise<boolean>,
  options: { withinMs?: number; what?: string } = {},
): Promise<void> {
  const withinMs = options.withinMs ?? WITHIN_MS;
  const deadline = performance.now() + withinMs;
  let last: unknown = null;
  for (;;) {
    try {
      if (await check()) return;
      last = null;
    } catch (error) {
      last = error;
    }
    if (performance.now() > deadline)
      throw new Error(`${options.what ?? 'the condition'} did not come true within ${withinMs} ms`, { cause: last });
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
