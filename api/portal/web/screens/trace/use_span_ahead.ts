// Asks for the span beside the selected one while the person reads, so that moving on shows its texts
// at once. One request at a time, begun when that of the selected span is answered, and cancelled when
// the person goes elsewhere.
import { type QueryClient, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef } from 'react';
import { useOrganization } from '../../client/session.ts';
import { rowAhead } from '../../trace/model/ahead.ts';
import { spanOfRow, useTraceStore } from '../../trace/store.ts';
import { spanQuery } from './trace_api.ts';

/** Spans that were left stay in memory, at most this many. */
const LEFT_SPANS_MAX = 50;

type SpanKey = ReturnType<typeof spanQuery>['queryKey'];

/** Ends the request for a span that nothing shows. */
function cancelUnseen(queries: QueryClient, queryKey: SpanKey): void {
  const query = queries.getQueryCache().find({ queryKey });
  if (query?.getObserversCount() === 0) void queries.cancelQueries({ queryKey, exact: true });
}

/** Forgets the spans that were left first. */
function forgetOldest(queries: QueryClient, [org_id, path]: SpanKey): void {
  const left = queries
    .getQueryCache()
    .findAll({ queryKey: [org_id, path], type: 'inactive' })
    .toSorted((a, b) => b.state.dataUpdatedAt - a.state.dataUpdatedAt);
  for (const { queryKey } of left.slice(LEFT_SPANS_MAX)) queries.removeQueries({ queryKey, exact: true });
}

/**
 * Reads the next span ahead.
 * @param row selected row
 * @param isRead true once the selected span is here
 */
export function useSpanAhead(traceId: string, row: number, isRead: boolean): void {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const store = useTraceStore();
  const moves = useRef({ before: row, selected: row });
  const asked = useRef<{ span: string; queryKey: SpanKey } | null>(null);
  useEffect(() => {
    if (moves.current.selected !== row) moves.current = { before: moves.current.selected, selected: row };
    const { rows, model } = store.get();
    const ahead = rowAhead(rows, moves.current.before, row);
    const span = ahead === null ? undefined : model.tree.spanId[spanOfRow(model, ahead)];
    // The span that was asked for ahead may be the selected one by now; then its panel shows it.
    if (asked.current !== null && asked.current.span !== span) cancelUnseen(queries, asked.current.queryKey);
    asked.current = null;
    if (!isRead || span === undefined) return;
    const query = spanQuery(org_id, traceId, span);
    asked.current = { span, queryKey: query.queryKey };
    forgetOldest(queries, query.queryKey);
    // The panel shows the error when the span is selected.
    queries.query(query).catch(() => undefined);
  }, [queries, store, org_id, traceId, row, isRead]);
  useEffect(
    () => () => {
      if (asked.current !== null) cancelUnseen(queries, asked.current.queryKey);
    },
    [queries],
  );
}
