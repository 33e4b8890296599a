// Loads the skeleton of the trace that the pointer or the cursor rests on, so that it is there when the
// trace opens. One at a time: another row, or leaving the row, cancels the request, unless a screen uses it.
import { useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { outlineQuery } from '../trace/trace_api.ts';

/** Returns the functions for a row that is rested on, and for leaving it. */
export function useTraceAhead(org_id: string): { ahead: (trace_id: string) => void; leave: () => void } {
  const queries = useQueryClient();
  const loading = useRef<string | null>(null);
  const leave = (): void => {
    if (loading.current === null) return;
    const { queryKey } = outlineQuery(org_id, loading.current);
    loading.current = null;
    const query = queries.getQueryCache().find({ queryKey });
    if (query?.getObserversCount() === 0) void queries.cancelQueries({ queryKey, exact: true });
  };
  const ahead = (trace_id: string): void => {
    if (loading.current === trace_id) return;
    leave();
    loading.current = trace_id;
    queries.query(outlineQuery(org_id, trace_id)).catch(() => undefined);
  };
  return { ahead, leave };
}
