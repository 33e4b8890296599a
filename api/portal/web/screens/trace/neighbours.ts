// The traces before and after this one in the list that it was opened from. The list is read from the
// cache of answers, so the trace needs no copy of it; a trace that was opened by a link has no list.
import type { QueryClient } from '@tanstack/react-query';
import { navigate } from 'wouter/use-browser-location';
import type { TraceItem } from '../../lists/trace_data.ts';
import { toast } from '../../ui/toast.tsx';
import { outlineQuery } from './trace_api.ts';

/** Returns the traces in a cached answer of the list, which is one page or several. */
export function itemsOf(data: unknown): TraceItem[] {
  if (typeof data !== 'object' || data === null) return [];
  if ('pages' in data && Array.isArray(data.pages)) return data.pages.flatMap(itemsOf);
  return 'data' in data && Array.isArray(data.data) ? (data.data as TraceItem[]) : [];
}

/** Returns the id of a neighbour in the list that was loaded last and has the trace; null at its ends. */
function neighbourOf(queries: QueryClient, org_id: string, traceId: string, step: 1 | -1): string | null {
  const lists = queries
    .getQueryCache()
    .findAll({ queryKey: [org_id, '/v1/traces'] })
    .toSorted((a, b) => b.state.dataUpdatedAt - a.state.dataUpdatedAt);
  for (const { state } of lists) {
    const ids = itemsOf(state.data).map(({ trace_id }) => trace_id);
    const at = ids.indexOf(traceId);
    if (at >= 0) return ids[at + step] ?? null;
  }
  return null;
}

/** Opens the next or previous trace of the list, and asks for the one after it. */
export function goToNeighbour(queries: QueryClient, org_id: string, traceId: string, step: 1 | -1): void {
  const next = neighbourOf(queries, org_id, traceId, step);
  if (next === null) {
    toast({ text: step === 1 ? 'This is the last trace of the list' : 'This is the first trace of the list' });
    return;
  }
  navigate(`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(next)}`, { replace: true });
  const after = neighbourOf(queries, org_id, next, step);
  if (after !== null) queries.query(outlineQuery(org_id, after)).catch(() => undefined);
}
