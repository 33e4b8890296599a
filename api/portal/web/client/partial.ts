// Answers on the page that lack rows because a shard of the store is away, as meta.partial says. They are read again
// until they are whole.
import { queryClient } from './query_client.ts';

/** Their meta.partial also says that a bound was reached, which they show themselves. */
const BOUNDED: ReadonlySet<unknown> = new Set(['/v1/traces/facets', '/v1/traces/series']);
const AGAIN_MS = 5000;

interface Read {
  queryKey: readonly unknown[];
  state: { data: unknown };
}

const isMarked = (answer: unknown): boolean =>
  typeof answer === 'object' &&
  answer !== null &&
  'meta' in answer &&
  (answer.meta as { partial?: unknown } | undefined)?.partial === true;

/** Returns whether an answer, or a page of an endless list, lacks rows. */
function isPartial({ queryKey, state: { data } }: Read): boolean {
  if (BOUNDED.has(queryKey[1])) return false;
  const pages = (data as { pages?: unknown } | null | undefined)?.pages;
  return Array.isArray(pages) ? pages.some(isMarked) : isMarked(data);
}

/** Whether a read that the page shows lacks rows. */
export const lacksRows = (): boolean => queryClient.getQueryCache().findAll({ type: 'active' }).some(isPartial);

/**
 * Calls a listener when that may have changed, and reads partial answers again meanwhile; returns the function that
 * ends both.
 */
export function onLackChange(listener: () => void): () => void {
  const timer = setInterval(() => {
    void queryClient.refetchQueries({ type: 'active', predicate: isPartial });
  }, AGAIN_MS);
  const end = queryClient.getQueryCache().subscribe(listener);
  return () => {
    end();
    clearInterval(timer);
  };
}
