// Answers that lack the rows of a shard which is away. Only a caller that says so in its own answer gets
// them: elsewhere such a read fails, so that no sum is wrong in silence.
import { AsyncLocalStorage } from 'node:async_hooks';

const callers = new AsyncLocalStorage<{ partial: boolean }>();

/**
 * Runs something whose reads may lack the rows of shards.
 * @param run gets a function that returns whether one of its reads has lacked some
 */
export function allowPartial<T>(run: (isPartial: () => boolean) => Promise<T>): Promise<T> {
  const caller = { partial: false };
  return callers.run(caller, () => run(() => caller.partial));
}

/** Returns true if the caller of a read takes one that lacks rows. */
export const isPartialAllowed = (): boolean => callers.getStore() !== undefined;

/** Notes that a read of this caller lacks rows. */
export function notePartial(): void {
  const caller = callers.getStore();
  if (caller !== undefined) caller.partial = true;
}
