// Runs tasks of organizations, a bounded number at a time in all and for each organization, so that
// the slow tasks of one organization delay no other. Tasks of an organization begin in their order.

export interface TurnsOptions {
  atOnce: number;
  orgAtOnce: number;
  /** No task begins after it aborts. */
  signal: AbortSignal;
}

/**
 * Runs a task for each item. Resolves when the running ones have ended.
 * @param run must not reject
 * @returns the number of items that did not begin in time
 */
export async function inTurns<T extends { org_id: string }>(
  items: readonly T[],
  { atOnce, orgAtOnce, signal }: TurnsOptions,
  run: (item: T) => Promise<void>,
): Promise<number> {
  const waiting = new Map(
    [...Map.groupBy(items, ({ org_id }) => org_id)].map(([org_id, own]) => [org_id, own.toReversed()]),
  );
  const running = new Map<string, number>();
  const tasks = new Set<Promise<void>>();
  /** Begins a task of the first organization with room, which then goes to the end of the line. */
  const begin = (): boolean => {
    for (const [org_id, own] of waiting) {
      const busy = running.get(org_id) ?? 0;
      if (busy >= orgAtOnce) continue;
      const item = own.pop();
      waiting.delete(org_id);
      if (own.length > 0) waiting.set(org_id, own);
      if (item === undefined) continue;
      running.set(org_id, busy + 1);
      const task = run(item).finally(() => {
        running.set(org_id, (running.get(org_id) ?? 1) - 1);
        tasks.delete(task);
      });
      tasks.add(task);
      return true;
    }
    return false;
  };
  for (;;) {
    while (!signal.aborted && tasks.size < atOnce && begin());
    if (tasks.size === 0) break;
    await Promise.race(tasks);
  }
  return [...waiting.values()].reduce((sum, own) => sum + own.length, 0);
}
