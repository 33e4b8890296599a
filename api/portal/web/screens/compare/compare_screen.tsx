// Two traces side by side: the baseline on the left, the candidate on the right. Their figures stand
// in the head, their aligned spans below, and the texts of the open pair beside these.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useMemo, useState } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { useOrganization } from '../../client/session.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { alignTrees } from '../../trace/compare/align.ts';
import { countStates, shownRows, type ShownRow } from '../../trace/compare/compared_rows.ts';
import type { Outline } from '../../trace/model/outline.ts';
import { buildTree } from '../../trace/model/tree.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { mediaQuery } from '../../ui/media_query.ts';
import { SplitPane } from '../../ui/split_pane.tsx';
import { useSearchState } from '../../url/use_search_state.ts';
import { PanelSheet } from '../trace/panel_sheet.tsx';
import { outlineQuery } from '../trace/trace_api.ts';
import { AlignedRows, firstOf, STATE_WORDS, type Trees } from './aligned_rows.tsx';
import { thresholdOf, thresholdQuery } from './compare_api.ts';
import { Fields, SIDES, TraceLine } from './compare_head.tsx';
import { compareUrl, pairName, rowOfPair } from './compare_url.ts';
import { NoPair, PairPanel } from './pair_panel.tsx';
import styles from './compare.module.css';

/** The address follows the cursor when the keys rest, since browsers limit how often it may change. */
const REST_MS = 250;

/** The page. */
export default function CompareScreen(): ReactElement {
  const { org_id } = useOrganization();
  const param = useRouteParams();
  const [left, right] = [param('a'), param('b')];
  const queries = [useQuery(outlineQuery(org_id, left)), useQuery(outlineQuery(org_id, right))] as const;
  const outlines = [queries[0].data?.data, queries[1].data?.data] as const;
  usePageRequest('/v1/traces/compare', { baseline_trace_id: left, candidate_trace_id: right });
  const swap = (): void => {
    const path = [right, left].map(encodeURIComponent).join('/');
    navigate(`/o/${encodeURIComponent(org_id)}/compare/${path}`);
  };
  useKeys('Comparison', [{ keys: 'x', label: 'Swap baseline and candidate', run: swap }]);
  return (
    <div className={styles.screen}>
      <header className={styles.head}>
        <div className={styles.traces}>
          <TraceLine side={0} id={left} trace={outlines[0]?.trace ?? null} />
          <TraceLine side={1} id={right} trace={outlines[1]?.trace ?? null} />
          <Button icon="swap" keys="x" hint="Swap baseline and candidate" onClick={swap}>
            Swap
          </Button>
        </div>
        {queries.every(({ isError }) => !isError) && <Fields left={left} right={right} />}
      </header>
      {queries.map(
        ({ error, refetch }, side) =>
          error !== null && (
            <div key={SIDES[side]} className={styles.failure}>
              <ErrorPanel
                error={error}
                what={`the ${(SIDES[side] ?? '').toLowerCase()}`}
                onRetry={() => void refetch()}
              />
            </div>
          ),
      )}
      {outlines[0] !== undefined && outlines[1] !== undefined ? (
        <Body key={`${left} ${right}`} left={outlines[0]} right={outlines[1]} />
      ) : (
        queries.every(({ isError }) => !isError) && (
          <div className={styles.failure}>
            <Skeleton rows={16} />
          </div>
        )
      )}
    </div>
  );
}

/** True where the columns of both traces and their bars leave no room for a panel beside them. */
const useMedium = mediaQuery('(width < 1200px)').useMatches;

/** The aligned spans and the open pair. */
function Body({ left, right }: { left: Outline; right: Outline }): ReactElement {
  const { alignment, trees, rows, showsAll, toggleAll, cursor, setCursor, unfold } = useRows(left, right);
  const isNarrow = useNarrow();
  const direction = useMedium() ? 'column' : 'row';
  const [hasSheet, setSheet] = useState(false);
  const move = (row: ShownRow): void => {
    setCursor(firstOf(row));
  };
  const open = (row: ShownRow): void => {
    if ('row' in row) setSheet(isNarrow);
    else unfold(row.from);
    move(row);
  };
  const step = (by: 1 | -1) => (): void => {
    const at = rows.findIndex((row) => firstOf(row) === cursor);
    const next = rows[Math.min(rows.length - 1, Math.max(0, at + by))];
    if (next !== undefined) move(next);
  };
  useKeys('Aligned spans', [
    { keys: ['j', 'ArrowDown'], label: 'Next row', silent: true, run: step(1) },
    { keys: ['k', 'ArrowUp'], label: 'Previous row', silent: true, run: step(-1) },
    { keys: 'o', label: 'Show only what changed, or all spans', run: toggleAll },
  ]);
  const isPair = rows.some((row) => 'row' in row && row.row === cursor);
  const ids: [string, string] = [left.trace.trace_id, right.trace.trace_id];
  const panel = isPair ? (
    <PairPanel key={cursor} alignment={alignment} trees={trees} row={cursor} ids={ids} />
  ) : (
    <NoPair />
  );
  const table = (
    <div className={styles.table}>
      <AlignedRows alignment={alignment} trees={trees} rows={rows} open={cursor} onMove={move} onOpen={open} />
    </div>
  );
  return (
    <>
      <div className={styles.tools}>
        <Summary alignment={alignment} />
        <Button look="quiet" aria-pressed={!showsAll} keys="o" hint="Fold unchanged spans" onClick={toggleAll}>
          Only what changed
        </Button>
      </div>
      <div className={styles.content}>
        {isNarrow ? (
          table
        ) : (
          <SplitPane
            key={direction}
            name={direction === 'row' ? 'compare' : 'compare.below'}
            label="Size of the panel"
            share={0.55}
            direction={direction}
          >
            {[table, panel]}
          </SplitPane>
        )}
      </div>
      {isNarrow && hasSheet && isPair && (
        <PanelSheet
          onClose={() => {
            setSheet(false);
          }}
        >
          {panel}
        </PanelSheet>
      )}
    </>
  );
}

/** Returns the aligned rows that are shown, and the row of the cursor. The address names the pair of the cursor. */
function useRows(left: Outline, right: Outline) {
  const { org_id } = useOrganization();
  const [url, change] = useSearchState(compareUrl);
  const policy = useQuery(thresholdQuery(org_id));
  const threshold = thresholdOf(policy.data);
  const trees = useMemo((): Trees => ({ left: buildTree(left), right: buildTree(right) }), [left, right]);
  const alignment = useMemo(() => alignTrees(trees.left, trees.right, threshold), [trees, threshold]);
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const showsAll = url.only === 'all';
  const named = useMemo(() => rowOfPair(alignment, url.pair, trees), [alignment, url.pair, trees]);
  // A link may name an unchanged pair.
  const [linked] = useState(named);
  const rows = useMemo(
    () => shownRows(alignment, showsAll ? null : opened, linked),
    [alignment, opened, showsAll, linked],
  );
  const [cursor, setCursor] = useCursorRow(named, (row) => {
    const isPairRow = rows.some((one) => 'row' in one && one.row === row);
    if (isPairRow) change({ pair: pairName(alignment, row, trees) }, { replace: true });
  });
  const toggleAll = (): void => {
    change({ only: showsAll ? 'changed' : 'all' });
  };
  const unfold = (from: number): void => {
    setOpened(new Set([...opened, from]));
  };
  return { alignment, trees, rows, showsAll, toggleAll, cursor, setCursor, unfold };
}

/** Says how many spans are in which state. */
function Summary({ alignment }: { alignment: Parameters<typeof countStates>[0] }): ReactElement {
  const counts = useMemo(() => countStates(alignment), [alignment]);
  const words = (['changed', 'left', 'right', 'same'] as const)
    .filter((state) => counts[state] > 0)
    .map((state) => `${count(counts[state])} ${STATE_WORDS[state]}`);
  return (
    <p role="status">
      {counts.changed + counts.left + counts.right === 0
        ? 'No span changed, as far as names, outcomes, models, times, tokens and costs tell.'
        : `Spans: ${words.join(', ')}`}
    </p>
  );
}

/** The row of the cursor: the one of the address at first; the address follows it. */
function useCursorRow(named: number, write: (row: number) => void): [number, (row: number) => void] {
  const [cursor, setCursor] = useState({ row: named, from: named });
  // The address changed from outside: Back, Forward, or a link.
  if (cursor.from !== named && cursor.row !== named) setCursor({ row: named, from: named });
  const { row } = cursor;
  useEffect(() => {
    if (row === named) return undefined;
    const timer = setTimeout(() => {
      write(row);
    }, REST_MS);
    return () => {
      clearTimeout(timer);
    };
  });
  return [
    row,
    (next) => {
      setCursor({ row: next, from: named });
    },
  ];
}
