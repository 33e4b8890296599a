// Runs tasks concurrently and keeps their results even when some of them fail.

/**
 * Resolves, when all tasks have ended, with the results and the first failure; so no task goes on
 * unobserved.
 */
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
