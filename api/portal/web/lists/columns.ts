// The columns of the trace table: their order, widths, and which of them show without a choice.
import type { Sort } from './list_url.ts';

export type ColumnId =
  | 'started_at'
  | 'name'
  | 'agent_id'
  | 'duration_ms'
  | 'cost_usd'
  | 'tokens'
  | 'spans'
  | 'verdicts'
  | 'tags'
  | 'user_id'
  | 'session_id'
  | 'models'
  | 'first_text'
  | 'answer'
  | 'first_error';

export interface ListColumn {
  id: ColumnId;
  label: string;
  /** Width in pixels, and the share of free width that the column takes beyond it. */
  width: number;
  grow: number;
  /** True for numbers, which stand at the end of their cell. */
  numeric: boolean;
  /** The order that the head of the column asks for. */
  sort: Sort | null;
  /** True if the column needs GET /v1/traces/previews, which is asked for the visible rows only. */
  preview: boolean;
}

function column(id: ColumnId, label: string, width: number, grow: number, more: Partial<ListColumn> = {}): ListColumn {
  return { id, label, width, grow, numeric: false, sort: null, preview: false, ...more };
}

const COLUMNS: readonly ListColumn[] = [
  column('started_at', 'Started', 112, 0, { sort: 'started_at' }),
  column('name', 'Name', 152, 4),
  column('agent_id', 'Agent', 92, 3),
  column('duration_ms', 'Duration', 108, 0, { numeric: true, sort: 'duration_ms' }),
  column('cost_usd', 'Cost', 84, 0, { numeric: true, sort: 'cost_usd' }),
  column('tokens', 'Tokens', 108, 0, { numeric: true, sort: 'tokens' }),
  column('spans', 'Spans', 56, 0, { numeric: true }),
  column('verdicts', 'Verdicts', 72, 0, { preview: true }),
  column('tags', 'Tags', 136, 2),
  column('user_id', 'User', 96, 1),
  column('session_id', 'Session', 96, 1),
  column('models', 'Models', 120, 1, { preview: true }),
  column('first_text', 'First message', 200, 3, { preview: true }),
  column('answer', 'Last answer', 200, 3, { preview: true }),
  column('first_error', 'First error', 200, 3, { preview: true }),
];
const DEFAULT_COUNT = 9;
const DEFAULT_COLUMNS: readonly ColumnId[] = COLUMNS.slice(0, DEFAULT_COUNT).map(({ id }) => id);

/** Narrowest and widest column that a person can choose, and the step between two widths, in pixels. */
const WIDTH_MIN = 48;
const WIDTH_MAX = 640;
export const WIDTH_STEP = 16;

/**
 * Returns the columns of these names in their order; without a known name, the default ones. A name is
 * that of a column, or with a width in pixels `name:240`.
 */
export function columnsOf(names: readonly string[] | null): readonly ListColumn[] {
  const columns = new Map<ColumnId, ListColumn>();
  for (const name of names ?? DEFAULT_COLUMNS) {
    const [id, width] = name.split(':', 2);
    const known = COLUMNS.find((one) => one.id === id);
    if (known !== undefined && !columns.has(known.id)) columns.set(known.id, sized(known, width));
  }
  return columns.size > 0 ? [...columns.values()] : columnsOf(null);
}

function sized(known: ListColumn, width: string | undefined): ListColumn {
  if (width === undefined || !/^\d{1,4}$/.test(width)) return known;
  return { ...known, width: withinBounds(Number(width)), grow: 0 };
}

const withinBounds = (width: number): number => Math.min(WIDTH_MAX, Math.max(WIDTH_MIN, width));

/** Returns the names that columnsOf returns these columns for. */
export const namesOf = (columns: readonly ListColumn[]): string[] =>
  columns.map(({ id, width, grow }) => {
    const known = COLUMNS.find((one) => one.id === id);
    return known?.width === width && known.grow === grow ? id : `${id}:${width}`;
  });

/** Returns the columns with this one shown at the end, or hidden; the last one stays. */
export function toggledColumn(columns: readonly ListColumn[], id: ColumnId): readonly ListColumn[] {
  const others = columns.filter((one) => one.id !== id);
  if (others.length < columns.length) return others.length === 0 ? columns : others;
  return [...columns, ...COLUMNS.filter((one) => one.id === id)];
}

/** Returns the columns with this one moved by a number of places; at an end it stays. */
export function movedColumn(columns: readonly ListColumn[], id: ColumnId, by: 1 | -1): readonly ListColumn[] {
  const at = columns.findIndex((one) => one.id === id);
  const moved = columns[at];
  if (moved === undefined || at + by < 0 || at + by >= columns.length) return columns;
  const others = columns.toSpliced(at, 1);
  return others.toSpliced(at + by, 0, moved);
}

/** Returns the columns with this one wider or narrower. It then has a fixed width. */
export function resizedColumn(columns: readonly ListColumn[], id: ColumnId, by: number): readonly ListColumn[] {
  return columns.map((one) => (one.id === id ? { ...one, width: withinBounds(one.width + by), grow: 0 } : one));
}

/** Returns all columns, for the menu that chooses among them. */
export const allColumns = (): readonly ListColumn[] => COLUMNS;

/** Returns the track of a column in the grid of the table. */
export const trackOf = ({ width, grow }: ListColumn): string =>
  grow === 0 ? `${width}px` : `minmax(${width}px, ${grow}fr)`;
