// The cache of what the server answered, and the one place that decides what is retried.
import { QueryClient } from '@tanstack/react-query';
import { NO_ANSWER, RequestError } from './error.ts';
import { onRecovery } from './health.ts';
import { isPartial, PARTIAL_AGAIN_MS } from './partial.ts';

const RETRIES_MAX = 2;
const RETRY_MS = 1000;
/** A read that would have to wait longer than this shows the countdown and a button instead. */
const RETRY_AFTER_S_MAX = 2;
/** Milliseconds for which an answer counts as fresh. */
export const FRESH = { list: 0, registry: 60_000, facets: 30_000, complete_trace: 300_000 } as const;

/** Returns true if a failed read is tried again by itself: no answer, 429, 502 and 503. */
export function retriesRead(failures: number, error: unknown): boolean {
  if (!(error instanceof RequestError) || failures >= RETRIES_MAX) return false;
  if (error.status === 429) return (error.retry_after ?? 1) <= RETRY_AFTER_S_MAX;
  return isAway(error);
}

/** Returns the milliseconds to wait before the next try: Retry-After, or a delay that doubles. */
export function retryDelay(failures: number, error: unknown): number {
  const after = error instanceof RequestError ? error.retry_after : null;
  return after === null ? RETRY_MS * 2 ** failures : after * 1000;
}

/** Returns true for the error of a read that fails because a part of the service does not answer. */
const isAway = (error: unknown): boolean =>
  error instanceof RequestError && (error.status === NO_ANSWER || error.status === 502 || error.status === 503);

/** The client of all screens. Changes are never retried by themselves. */
export const queryClient = new QueryClient({
  defaultOptions: {
    // The browser's own guess that it is offline is wrong for a service on the same machine.
    queries: {
      retry: retriesRead,
      retryDelay,
      staleTime: FRESH.list,
      gcTime: 300_000,
      networkMode: 'always',
      refetchInterval: (query) => isPartial(query) && PARTIAL_AGAIN_MS,
    },
    mutations: { retry: false, networkMode: 'always' },
  },
});

// What failed while a part of the service was away is read again once it answers.
onRecovery(() => {
  void queryClient.refetchQueries({ type: 'active', predicate: ({ state }) => state.fetchFailureReason !== null });
});

const cache = queryClient.getQueryCache();
/** Returns true while a read that the page shows lacks rows of a shard. */
export const lacksRows = (): boolean => cache.findAll({ type: 'active' }).some(isPartial);
/** Calls a listener when that may have changed; returns the function that ends that. */
export const onLackChange = (listener: () => void): (() => void) => cache.subscribe(listener);

/** Lets a read run whose answer a screen will ask for soon. Its error is for the screen to show. */
export function readAhead(answer: Promise<unknown>): void {
  answer.catch(() => undefined);
}
