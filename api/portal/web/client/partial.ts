// Answers that lack rows because a shard of the store is away, as meta.partial says.

/** Their meta.partial also says that a bound was reached, which they show themselves. */
const BOUNDED = /traces.(facets|series)$/;
/** Time after which such an answer is read again, in milliseconds. */
export const PARTIAL_AGAIN_MS = 5000;

interface Marked {
  meta?: { partial?: unknown };
  /** Pages of a list that loads more as it is scrolled. */
  pages?: (Marked | undefined)[];
}

/** Returns whether the answer of a read lacks rows, or one of its pages does. */
export function isPartial({ queryKey, state }: { queryKey: readonly unknown[]; state: { data: unknown } }): boolean {
  const data = state.data as Marked | null | undefined;
  return !BOUNDED.test(String(queryKey[1])) && (data?.pages ?? [data]).some((answer) => answer?.meta?.partial === true);
}
