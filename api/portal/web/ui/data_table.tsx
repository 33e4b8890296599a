// The one table: a grid of rows of one height, of which only those in view are mounted. Arrows, `j`
// and `k` move the cursor (the screen binds the letters through `cursor`), Enter opens the row; the
// whole grid is one tab stop. Rows are asked for when the end comes near.
import { useVirtualizer } from '@tanstack/react-virtual';
import {
  type CSSProperties,
  type KeyboardEvent,
  type ReactElement,
  type ReactNode,
  useEffect,
  useEffectEvent,
  useId,
  useRef,
} from 'react';
import { cx } from './cx.ts';
import styles from './data_table.module.css';

const OVERSCAN = 12;
/** Rows before the end at which the next page is asked for. */
const NEAR_END = 20;
/** Time on a row after which it is loaded ahead. */
const REST_MS = 80;

export interface Column<Row> {
  id: string;
  head: ReactNode;
  cell: (row: Row) => ReactNode;
  /** Track of the CSS grid, with its least width in pixels: `120px`, `minmax(160px, 2fr)`. */
  width: string;
  align?: 'start' | 'end';
  /** Sorting of the list by this column; onSort is called by the head, which then is a button. */
  sorted?: 'ascending' | 'descending';
  onSort?: () => void;
}

export interface DataTableProps<Row> {
  /** Name of the table. */
  label: string;
  columns: readonly Column<Row>[];
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  /** Index of the row under the cursor; -1: none. */
  cursor: number;
  onCursor: (index: number) => void;
  onOpen?: (row: Row, event: { newTab: boolean }) => void;
  /** Rows that are marked for an action. */
  marked?: ReadonlySet<string>;
  /** Called when rows near the end come into view. */
  onNearEnd?: () => void;
  /** All rows of the list, where more than the loaded ones exist. */
  total?: number;
  rowHeight?: number;
  /** Rows are dimmed while newer ones load. */
  stale?: boolean;
  /** Called when the pointer or the cursor rests on a row, to load ahead. */
  onRest?: (row: Row) => void;
  /** Called when the pointer leaves a row. */
  onLeave?: () => void;
  /** Content below the last row, for example skeleton rows or an empty state. */
  after?: ReactNode;
}

/** Height of a row in pixels by the person's density, as the style sheet has it. */
const rowHeightOf = (): number => {
  const height = Number.parseInt(getComputedStyle(document.documentElement).getPropertyValue('--row'), 10);
  return Number.isNaN(height) ? 28 : height;
};

function useRows<Row>({ rows, cursor, rowHeight, onNearEnd }: DataTableProps<Row>) {
  const scroller = useRef<HTMLDivElement>(null);
  const height = rowHeight ?? rowHeightOf();
  const virtualizer = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => height,
    overscan: OVERSCAN,
    // The head is sticky and must not cover the row under the cursor (WCAG 2.4.11).
    scrollPaddingStart: height,
  });
  const items = virtualizer.getVirtualItems();
  const last = items.at(-1)?.index ?? -1;
  const nearEnd = useEffectEvent(() => onNearEnd?.());
  useEffect(() => {
    if (last >= 0 && last >= rows.length - NEAR_END) nearEnd();
  }, [last, rows.length]);
  const show = useEffectEvent((index: number) => {
    virtualizer.scrollToIndex(index, { align: 'auto' });
  });
  useEffect(() => {
    if (cursor >= 0) show(cursor);
  }, [cursor]);
  return { scroller, height, items, size: virtualizer.getTotalSize(), page: items.length - 2 * OVERSCAN };
}

/** Calls onRest for the row on which the cursor stays for REST_MS. */
function useCursorRest<Row>({ rows, cursor, rowKey, onRest }: DataTableProps<Row>): void {
  const row = rows[cursor];
  const key = row === undefined ? null : rowKey(row);
  const rest = useEffectEvent(() => {
    if (row !== undefined) onRest?.(row);
  });
  useEffect(() => {
    if (key === null) return undefined;
    const timer = setTimeout(rest, REST_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [key]);
}

const steps = (page: number): Readonly<Record<string, number>> => ({
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: Math.max(1, page),
  PageUp: -Math.max(1, page),
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
});

/** A windowed table. */
export function DataTable<Row>(props: DataTableProps<Row>): ReactElement {
  const { label, columns, rows, cursor, onCursor, onOpen, total, stale = false, after } = props;
  useCursorRest(props);
  const id = useId();
  const { scroller, height, items, size, page } = useRows(props);
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = steps(page)[event.key];
    const row = rows[cursor];
    if (event.target !== event.currentTarget || event.altKey) return;
    if (step !== undefined && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      event.stopPropagation();
      onCursor(Math.min(rows.length - 1, Math.max(0, cursor + step)));
    } else if (event.key === 'Enter' && row !== undefined) {
      // A dialog that opens takes the focus, and the same key would press its first button.
      event.preventDefault();
      event.stopPropagation();
      onOpen?.(row, { newTab: event.ctrlKey || event.metaKey });
    }
  };
  const grid = {
    '--columns': columns.map(({ width }) => width).join(' '),
    '--table-width': `${leastWidth(columns)}px`,
    '--row-height': `${height}px`,
  };
  return (
    <div
      ref={scroller}
      role="grid"
      aria-label={label}
      aria-rowcount={(total ?? rows.length) + 1}
      aria-colcount={columns.length}
      aria-busy={stale || undefined}
      aria-activedescendant={cursor >= 0 && items.some(({ index }) => index === cursor) ? `${id}-${cursor}` : undefined}
      tabIndex={0}
      className={styles.table}
      style={grid as CSSProperties}
      onKeyDown={onKeyDown}
    >
      <Head columns={columns} />
      <div className={cx(styles.rows, stale && 'dimmed')} style={{ height: size }}>
        {items.map(({ index, start }) => (
          <TableRow key={index} {...props} id={`${id}-${index}`} index={index} start={start} />
        ))}
      </div>
      {after !== undefined && <div className={styles.after}>{after}</div>}
    </div>
  );
}

/** Returns the width below which the table scrolls: every row must have the same one, whatever it contains. */
function leastWidth<Row>(columns: readonly Column<Row>[]): number {
  return columns.reduce((sum, { width }) => sum + (Number.parseInt(width.replace('minmax(', ''), 10) || 0), 0);
}

function Head<Row>({ columns }: { columns: readonly Column<Row>[] }): ReactElement {
  return (
    <div role="row" aria-rowindex={1} className={cx(styles.row, styles.head)}>
      {columns.map(({ id, head, align, sorted, onSort }) => (
        <div key={id} role="columnheader" aria-sort={sorted} className={cx(styles.cell, align === 'end' && styles.end)}>
          {onSort === undefined ? (
            head
          ) : (
            <button type="button" className={styles.sort} onClick={onSort}>
              {head}
              {sorted !== undefined && <span aria-hidden="true">{sorted === 'descending' ? '↓' : '↑'}</span>}
            </button>
          )}
        </div>
      ))}
    </div>
  );
}

type RowProps<Row> = DataTableProps<Row> & { id: string; index: number; start: number };

function TableRow<Row>(props: RowProps<Row>): ReactElement | null {
  const { id, index, start, rows, columns, rowKey, cursor, onCursor, onOpen, onRest, onLeave, marked } = props;
  const timer = useRef(0);
  const row = rows[index];
  if (row === undefined) return null;
  const isMarked = marked?.has(rowKey(row)) ?? false;
  return (
    <div
      id={id}
      role="row"
      aria-rowindex={index + 2}
      aria-selected={marked === undefined ? index === cursor : isMarked}
      className={cx(styles.row, styles.body, index === cursor && styles.cursor, isMarked && styles.marked)}
      style={{ transform: `translateY(${start}px)` }}
      onClick={(event) => {
        // A selection of text and a click on a control inside of the row are no choice of the row.
        if (isControl(event.target) || getSelection()?.type === 'Range') return;
        onCursor(index);
        onOpen?.(row, { newTab: event.ctrlKey || event.metaKey });
      }}
      onPointerEnter={() => {
        timer.current = window.setTimeout(() => onRest?.(row), REST_MS);
      }}
      onPointerLeave={() => {
        clearTimeout(timer.current);
        onLeave?.();
      }}
    >
      {columns.map((column) => (
        <div key={column.id} role="gridcell" className={cx(styles.cell, column.align === 'end' && styles.end)}>
          {cut(column.cell(row))}
        </div>
      ))}
    </div>
  );
}

/** Returns the content of a cell; a text that does not fit ends in dots. */
const cut = (content: ReactNode): ReactNode =>
  typeof content === 'string' ? <span className={styles.words}>{content}</span> : content;

const isControl = (target: EventTarget): boolean =>
  target instanceof Element && target.closest('a, button, input, label') !== null;
