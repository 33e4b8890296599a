// Work that is done side by side and kept even where some of it fails.

/** What came of some tasks: the results there are, and the first failure. Resolves when all have ended, so that none goes on unseen. */
export async function allEnded<T>(
  tasks: readonly Promise<T>[],
): Promise<{ results: T[]; failure: { error: unknown } | null }> {
  const results: T[] = [];
  let failure: { error: unknown } | null = null;
  for (const end of await Promise.allSettled(tasks)) {
    if (end.status === 'fulfilled') results.push(end.value);
    else failure ??= { error: end.reason };
  }
  return { results, failure };
}
