// The waterfall: the tree of spans and their bars in one windowed treegrid. About 40 rows are
// mounted, whatever the trace has. The grid is one tab stop; the selected row is its active
// descendant, so that the focus survives rows that leave the window.
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  type RefObject,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { fitTime, isWhole, wholeView } from '../../trace/model/axis.ts';
import { groupOfRow, isGroupRow } from '../../trace/model/rows.ts';
import { type Snapshot, spanOfRow, useTrace, useTraceStore } from '../../trace/store.ts';
import { usePreferences } from '../../shell/preferences.ts';
import { NameTip } from './name_tip.tsx';
import { nameWidth } from './name_width.ts';
import { useZoomPointer } from './use_zoom_pointer.ts';
import styles from './waterfall.module.css';
import { WaterfallHead } from './waterfall_head.tsx';
import { WaterfallRow } from './waterfall_row.tsx';

const ROW_PX = 24;
const NARROW_ROW_PX = 44;
const OVERSCAN = 12;
/** A grid that is narrower than this has the bars of its rows below the names. */
const TWO_LINES_PX = 440;

interface WaterfallProps {
  onOpen: () => void;
  gridRef: RefObject<HTMLDivElement | null>;
}

/** Returns true while an element is narrower than this. */
function useNarrowerThan(element: RefObject<HTMLElement | null>, px: number): boolean {
  const [isNarrower, setNarrower] = useState(false);
  useLayoutEffect(() => {
    const { current } = element;
    if (current === null) return undefined;
    const look = (): void => {
      setNarrower(current.clientWidth < px);
    };
    const observer = new ResizeObserver(look);
    observer.observe(current);
    look();
    return () => {
      observer.disconnect();
    };
  }, [element, px]);
  return isNarrower;
}

/** Keeps the selected row in sight. */
function useScrollToRow(at: number, scrollTo: (index: number, options: { align: 'center' | 'auto' }) => void): void {
  const last = useRef(-1);
  useEffect(() => {
    // On opening the selected row stands in the middle; later it moves as little as it can.
    if (at >= 0 && at !== last.current) scrollTo(at, { align: last.current < 0 ? 'center' : 'auto' });
    last.current = at;
  }, [at, scrollTo]);
}

/** Keys of a treegrid that move through its rows; the others stand in the table of keys of the screen. */
function useGridKeys(onOpen: () => void): (event: KeyboardEvent<HTMLElement>) => void {
  const store = useTraceStore();
  return (event) => {
    const { rows, focusRow } = store.get();
    if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return;
    const at = rows.indexOf(focusRow);
    const page = Math.max(1, Math.floor(event.currentTarget.clientHeight / ROW_PX) - 2);
    const moves: Readonly<Record<string, number>> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      Home: 0,
      End: rows.length - 1,
      PageDown: at + page,
      PageUp: at - page,
    };
    const to = moves[event.key];
    if (to !== undefined) store.focus(rows[Math.min(Math.max(to, 0), rows.length - 1)] ?? focusRow);
    else if (event.key === 'Enter') onOpen();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
}

/** The waterfall of the open trace. */
export function Waterfall({ onOpen, gridRef }: WaterfallProps): ReactElement {
  const store = useTraceStore();
  const id = useId();
  const rows = useTrace(({ rows: shown }) => shown);
  const focusRow = useTrace(({ focusRow: row }) => row);
  const { trace_name_px } = usePreferences();
  const inTwoLines = useNarrowerThan(gridRef, TWO_LINES_PX);
  const rowHeight = inTwoLines ? NARROW_ROW_PX : ROW_PX;
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => gridRef.current,
    estimateSize: () => rowHeight,
    overscan: OVERSCAN,
    scrollPaddingStart: 32,
  });
  const { measure, scrollToIndex } = virtual;
  useEffect(() => {
    measure();
  }, [measure, rowHeight]);
  useScrollToRow(rows.indexOf(focusRow), scrollToIndex);
  useZoomPointer(gridRef);
  const onKeyDown = useGridKeys(onOpen);
  return (
    <>
      <div
        ref={gridRef}
        role="treegrid"
        aria-label="Spans of the trace"
        aria-rowcount={rows.length + 1}
        aria-colcount={6}
        aria-activedescendant={`${id}${focusRow}`}
        tabIndex={0}
        data-lines={inTwoLines ? 2 : 1}
        className={styles.grid}
        style={{ '--name-width': nameWidth(trace_name_px) } as CSSProperties}
        onKeyDown={onKeyDown}
      >
        <WaterfallHead />
        <div role="rowgroup" className={styles.rows} style={{ height: virtual.getTotalSize() }}>
          {virtual.getVirtualItems().map(({ index, start }) => {
            const row = rows[index] ?? 0;
            return (
              <WaterfallRow
                key={row}
                id={`${id}${row}`}
                row={row}
                index={index}
                top={start}
                isSelected={row === focusRow}
                onSelect={() => {
                  store.focus(row);
                }}
                onOpen={onOpen}
                onFit={() => {
                  fitRow(store.get(), row, (view) => {
                    store.setView(view);
                  });
                }}
              />
            );
          })}
        </div>
      </div>
      <NameTip grid={gridRef} selectedId={`${id}${focusRow}`} />
    </>
  );
}

/** Fits the axis to a row; to the whole trace if the row was fitted already. */
export function fitRow(snapshot: Snapshot, row: number, apply: (view: Snapshot['view']) => void): void {
  const { axis, view, model } = snapshot;
  const span = spanOfRow(model, row);
  const group = isGroupRow(row) ? model.groupSums[groupOfRow(row)] : undefined;
  const fitted = fitTime(axis, group?.from ?? model.tree.start[span] ?? 0, group?.to ?? model.tree.end[span] ?? 0);
  const isFitted = Math.abs(fitted.from - view.from) + Math.abs(fitted.to - view.to) < (view.to - view.from) * 1e-6;
  apply(isFitted && !isWhole(axis, view) ? wholeView(axis) : fitted);
}
