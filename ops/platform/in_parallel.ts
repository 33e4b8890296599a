// Runs tasks beside each other, a bounded number at a time.

/**
 * Runs a task for each item, at most `atOnce` at a time, in order. After a failure or an abort no further task starts.
 * Resolves when all have ended.
 * @throws what the first failed task threw, or the reason of the abort, once all running tasks have ended
 */
export async function inParallel<T>(
  items: Iterable<T>,
  atOnce: number,
  task: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const left = items[Symbol.iterator]();
  let failed = false;
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true && !failed; next = left.next()) {
      try {
        signal?.throwIfAborted();
        await task(next.value);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const ends = await Promise.allSettled(Array.from({ length: atOnce }, lane));
  const failure = ends.find((end) => end.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
