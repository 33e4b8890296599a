// A list of the API in the one table. The cursor stays on its row by id, also after Back; `j` and `k`
// move it, Enter opens its row, a click with Ctrl opens a new tab. Pages are asked for as their end
// comes near. The screen gives the columns and where a row leads.
import { type ReactElement, useMemo } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { type KeyBinding, useKeys } from '../shell/keys.ts';
import { type Column, DataTable } from '../ui/data_table.tsx';
import { Skeleton } from '../ui/skeleton.tsx';
import { useCursor } from './use_cursor.ts';
import { useNarrow } from './use_narrow.ts';

/** Height of a row of two lines, pixels. */
const TWO_LINES = 52;

/** Pages of a list, as useInfiniteQuery returns them. */
interface Pages {
  hasNextPage: boolean;
  isFetchingNextPage: boolean;
  isPlaceholderData: boolean;
  error: unknown;
  fetchNextPage: () => Promise<unknown>;
}

interface ListTableProps<Row> {
  /** Name of the table and of its keys. */
  label: string;
  /** Word for one row, for the names of the keys: `judge`. */
  noun: string;
  /** Names the list, for example its query: each has a cursor of its own. */
  address: string;
  rows: readonly Row[];
  rowKey: (row: Row) => string;
  columns: (narrow: boolean) => readonly Column<Row>[];
  /** Returns the page of a row. */
  hrefOf?: (row: Row) => string;
  /** Opens a row on this page. */
  onOpen?: (row: Row) => void;
  /** Other keys of the list, for the row under the cursor. */
  keys?: (active: Row | undefined) => readonly KeyBinding[];
  pages?: Pages;
  total?: number | undefined;
  marked?: ReadonlySet<string>;
  /** True: the first page is on its way. */
  loading?: boolean;
  /** False: a narrow screen shows rows of one line. */
  twoLines?: boolean;
}

const NO_KEYS = (): readonly KeyBinding[] => [];

/** The table. */
export function ListTable<Row>(props: ListTableProps<Row>): ReactElement {
  const { label, noun, address, rows, rowKey, columns, hrefOf, onOpen, keys = NO_KEYS, pages, total, marked } = props;
  const { loading = false, twoLines = true } = props;
  const ids = useMemo(() => rows.map(rowKey), [rows, rowKey]);
  const { cursor, setCursor } = useCursor(ids, address);
  const narrow = useNarrow();
  const active = rows[cursor];
  const open = (row: Row, newTab = false): void => {
    onOpen?.(row);
    if (hrefOf === undefined) return;
    if (newTab) window.open(hrefOf(row), '_blank', 'noopener');
    else navigate(hrefOf(row));
  };
  const step = (by: 1 | -1) => (): void => {
    setCursor(Math.min(ids.length - 1, Math.max(0, cursor + by)));
  };
  useKeys(label, [
    { keys: ['j', 'ArrowDown'], label: `Next ${noun}`, silent: true, run: step(1) },
    { keys: ['k', 'ArrowUp'], label: `Previous ${noun}`, silent: true, run: step(-1) },
    {
      keys: 'Enter',
      label: `Open the ${noun}`,
      silent: true,
      run: () => {
        if (active !== undefined) open(active);
      },
    },
    ...keys(active),
  ]);
  return (
    <DataTable
      label={label}
      columns={columns(narrow)}
      rows={rows}
      rowKey={rowKey}
      cursor={cursor}
      onCursor={setCursor}
      onOpen={(row, { newTab }) => {
        open(row, newTab);
      }}
      stale={pages?.isPlaceholderData ?? false}
      onNearEnd={() => {
        if (pages?.hasNextPage === true && !pages.isFetchingNextPage && pages.error === null)
          void pages.fetchNextPage();
      }}
      {...(marked === undefined ? {} : { marked })}
      {...(total === undefined ? {} : { total })}
      {...(narrow && twoLines ? { rowHeight: TWO_LINES } : {})}
      after={loading ? <Skeleton rows={20} height={16} /> : null}
    />
  );
}
