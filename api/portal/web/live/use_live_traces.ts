// The changes of the traces that a list shows, as they arrive.
import { useEffect, useEffectEvent } from 'react';
import { filterQuery } from '../lists/list_query.ts';
import type { ListUrl } from '../lists/list_url.ts';
import type { TraceItem } from '../lists/trace_data.ts';
import { listenLive } from './shared_live.ts';

interface TracesData {
  traces: readonly TraceItem[];
  dropped: number;
}

/**
 * Returns the query of the stream for a list, or null where a list cannot follow: fixed times, words
 * to search for, which the stream does not know, and orders in which new traces have no place on top.
 */
export function liveQueryOf(state: ListUrl): string | null {
  if (!('last' in state.time) || state.sort !== 'started_at' || state.filters.has('search')) return null;
  const params = new URLSearchParams({ topics: 'traces', ...filterQuery(state, 0) });
  params.delete('since');
  return params.toString();
}

/**
 * Calls onBatch for each batch of changed traces while the tab is visible.
 * @param query as liveQueryOf returns it; null follows nothing
 * @param onGap called when changes may have been missed
 */
export function useLiveTraces(
  org_id: string,
  query: string | null,
  onBatch: (batch: readonly TraceItem[], dropped: number) => void,
  onGap: () => void,
): void {
  const receive = useEffectEvent((name: string, data: unknown) => {
    if (name === 'resync') onGap();
    if (name !== 'traces') return;
    const { traces, dropped } = data as TracesData;
    onBatch(traces, dropped);
  });
  useEffect(() => {
    if (query === null) return undefined;
    const onVisible = (): void => {
      if (document.visibilityState === 'visible') receive('resync', null);
    };
    document.addEventListener('visibilitychange', onVisible);
    const stop = listenLive({ org_id, query }, ({ name, data }) => {
      receive(name, data);
    });
    return () => {
      document.removeEventListener('visibilitychange', onVisible);
      stop();
    };
  }, [org_id, query]);
}
