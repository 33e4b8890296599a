// The rows of the list with all that acts on them: keys, selection, the panel beside the table, new
// arrivals. The rows are there before anything else of the page.
import { type ReactElement, useEffect, useEffectEvent, useMemo, useState } from 'react';
import { useLocation } from 'wouter';
import type { Query } from '../../lists/list_query.ts';
import { writeListUrl, type ListUrl } from '../../lists/list_url.ts';
import { newCount } from '../../lists/rows.ts';
import { extended, NOTHING_SELECTED, toggled, type Selection } from '../../lists/selection.ts';
import type { TraceItem } from '../../lists/trace_data.ts';
import { liveQueryOf, useLiveTraces } from '../../live/use_live_traces.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import type { ChangeList } from '../../lists/use_list_url.ts';
import { type LiveRows, readNewer, type TracePages, useLiveRows } from '../../lists/use_trace_rows.ts';
import { DataTable } from '../../ui/data_table.tsx';
import { deferred } from '../../ui/deferred.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import { comparePath } from '../compare/candidates.ts';
import { QueueButton } from '../annotate/queue_button.tsx';
import { useColumns } from './column_choice.ts';
import { ListEnd, ListHead } from './list_bars.tsx';
import { Peek } from './peek.tsx';
import { PreviewProvider } from './preview_cells.tsx';
import { SelectionBar } from './selection_bar.tsx';
import { traceColumns } from './trace_columns.tsx';
import { useCursor } from '../../lists/use_cursor.ts';
import { useRowKeys } from './use_row_keys.ts';
import { useTraceAhead } from './use_trace_ahead.ts';
import styles from './traces_screen.module.css';

const NARROW_ROW = 52;
/** Most lists are not empty. */
const EmptyTraces = deferred(() => import('./empty_traces.tsx'));

interface TraceListProps {
  org_id: string;
  state: ListUrl;
  change: ChangeList;
  query: Query;
  /** Makes a relative range end now and loads the rows again. */
  renew: () => void;
  pages: TracePages;
}

/** The table, the panel beside it, and the bars around them. */
export function TraceList(props: TraceListProps): ReactElement {
  const { org_id, state, change, query, renew, pages } = props;
  const { data, error, hasNextPage, isPlaceholderData } = pages;
  const rows = useLiveRows(data?.pages, state, !hasNextPage);
  useArrivals(props, rows, pages.isSuccess && !isPlaceholderData);
  const list = useListActions(org_id, state, change, rows.list);
  const { selection, clear, hrefOf } = list;
  const counted = data?.pages[0]?.meta.total ?? null;
  const total = counted === null ? null : counted + rows.added;
  const peeked = rows.list.find(({ trace_id }) => trace_id === state.peek);
  const showNew = (): void => {
    if (rows.unseen > 0) renew();
    else rows.showWaiting();
  };
  return (
    <PreviewProvider org_id={org_id}>
      <ListHead total={total} loading={isPlaceholderData} fresh={newCount(rows)} onShow={showNew} />
      <div className={styles.split}>
        {error !== null && rows.list.length === 0 ? (
          <div className={styles.state}>
            <ErrorPanel
              error={error}
              what="the traces"
              onRetry={() => {
                void pages.refetch();
              }}
            />
          </div>
        ) : total === 0 && !isPlaceholderData ? (
          <div className={styles.state}>
            <EmptyTraces state={state} query={query} onChange={change} />
          </div>
        ) : (
          <Table {...props} rows={rows.list} total={total} list={list} />
        )}
        {peeked !== undefined && (
          <Peek
            trace={peeked}
            href={hrefOf(peeked.trace_id)}
            onClose={() => {
              change((now) => ({ ...now, peek: null }));
            }}
          />
        )}
      </div>
      {selection.ids.size > 0 ? (
        <SelectionBar ids={selection.ids} onClear={clear} onCompare={list.compare} />
      ) : (
        <QueueButton trace_ids={[]} query={new URLSearchParams(query).toString()} bare />
      )}
    </PreviewProvider>
  );
}

type ListActions = ReturnType<typeof useListActions>;

/** The active row, the selection, and the ways out of the list. */
function useListActions(org_id: string, state: ListUrl, change: ChangeList, rows: readonly TraceItem[]) {
  const [selection, setSelection] = useState<Selection>(NOTHING_SELECTED);
  const [, navigate] = useLocation();
  const ids = useMemo(() => rows.map(({ trace_id }) => trace_id), [rows]);
  const { cursor, active, setCursor } = useCursor(ids, writeListUrl({ ...state, peek: null }));
  const hrefOf = (trace_id: string): string =>
    `/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}`;
  const toggle = (trace_id: string, range: boolean): void => {
    setSelection((now) => (range ? extended(now, ids, trace_id) : toggled(now, trace_id)));
  };
  const clear = (): void => {
    setSelection(NOTHING_SELECTED);
  };
  const open = (trace_id: string): void => {
    navigate(hrefOf(trace_id));
  };
  const compare = (): void => {
    const [first, second, ...more] = [...selection.ids];
    if (first === undefined || second === undefined || more.length > 0) {
      toast({ text: 'Select two traces with x to compare them' });
      return;
    }
    // The baseline is the older one; a trace whose row is gone counts as older.
    const startOf = (id: string): string => rows.find(({ trace_id }) => trace_id === id)?.started_at ?? '';
    const [older, newer] = startOf(first) <= startOf(second) ? [first, second] : [second, first];
    navigate(comparePath(org_id, older, newer));
  };
  const move = (index: number): void => {
    setCursor(index);
    const next = ids[index];
    if (state.peek !== null && next !== undefined) change((now) => ({ ...now, peek: next }), { replace: true });
  };
  useRowKeys({
    ids,
    cursor,
    active,
    peek: state.peek,
    move,
    change,
    toggle,
    hasSelection: selection.ids.size > 0,
    onClear: clear,
    onCompare: compare,
    onOpen: open,
  });
  return { selection, cursor, hrefOf, toggle, clear, compare, open, move };
}

type TableProps = TraceListProps & { rows: readonly TraceItem[]; total: number | null; list: ListActions };

function Table({ org_id, state, change, pages, rows, total, list }: TableProps): ReactElement {
  const narrow = useNarrow();
  const shown = useColumns(state);
  const { ahead, leave } = useTraceAhead(org_id);
  const { error, hasNextPage, isFetchingNextPage, isPlaceholderData, fetchNextPage } = pages;
  const columns = traceColumns({
    columns: shown,
    narrow,
    sort: state.sort,
    max_ms: longest(rows),
    hrefOf: list.hrefOf,
    selected: list.selection.ids,
    onToggle: list.toggle,
    onSort: (sort) => {
      change((now) => ({ ...now, sort }));
    },
  });
  const loadMore = (): void => {
    if (hasNextPage && !isFetchingNextPage) void fetchNextPage();
  };
  return (
    <DataTable
      label="Traces"
      columns={columns}
      rows={rows}
      rowKey={({ trace_id }) => trace_id}
      cursor={list.cursor}
      onCursor={list.move}
      onOpen={({ trace_id }, { newTab }) => {
        if (newTab) window.open(list.hrefOf(trace_id), '_blank', 'noopener');
        else list.open(trace_id);
      }}
      onRest={({ trace_id }) => {
        ahead(trace_id);
      }}
      onLeave={leave}
      marked={list.selection.ids}
      stale={isPlaceholderData}
      onNearEnd={() => {
        if (error === null) loadMore();
      }}
      {...(total === null ? {} : { total })}
      {...(narrow ? { rowHeight: NARROW_ROW } : {})}
      after={
        <ListEnd
          rows={rows.length}
          total={total}
          loading={isFetchingNextPage || pages.isPending}
          error={error}
          onRetry={loadMore}
        />
      }
    />
  );
}

/** Follows the list. In live mode new rows are shown at once, unless the pointer or a choice of rows holds them. */
function useArrivals({ org_id, state, query, renew }: TraceListProps, rows: LiveRows, loaded: boolean): void {
  const { list, waiting, showWaiting, onBatch } = rows;
  const since = list[0]?.started_at ?? query['since'];
  // A gap before the first rows are there is closed after them: they may have been read before it.
  const [gap, setGap] = useState(false);
  const closeGap = useEffectEvent(() => {
    setGap(false);
    if (since === undefined) renew();
    else
      void readNewer(org_id, query, since).then(
        ({ rows: newer, dropped }) => {
          onBatch(newer, dropped);
        },
        () => undefined,
      );
  });
  useLiveTraces(org_id, liveQueryOf(state), onBatch, () => {
    setGap(true);
  });
  useEffect(() => {
    if (gap && loaded) closeGap();
  }, [gap, loaded]);
  useEffect(() => {
    if (!state.live || waiting.length === 0) return;
    const grid = document.querySelector('[role="grid"]');
    const held = grid?.matches(':hover') === true || (grid?.scrollTop ?? 0) > 0 || getSelection()?.type === 'Range';
    if (!held) showWaiting();
  }, [state.live, waiting, showWaiting]);
}

const lengths = new WeakMap<readonly TraceItem[], number>();

/** Returns the longest duration of the rows, which is computed once for each list of rows. */
function longest(rows: readonly TraceItem[]): number {
  const known = lengths.get(rows);
  if (known !== undefined) return known;
  const max = rows.reduce((most, { duration_ms }) => Math.max(most, duration_ms), 1);
  lengths.set(rows, max);
  return max;
}
