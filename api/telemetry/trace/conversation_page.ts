// Chooses the calls of one page of a conversation. Pure: takes the calls and tools of a trace with
// the sizes of their texts, returns those of the page within its bounds.
import { z } from 'zod';
import { decodeCursor, encodeCursor } from '../../http/pagination.ts';
import { parentsOf } from './order.ts';
import type { CallRow } from './store.ts';

/** Maximum bytes of the texts of a page's own calls and tools. */
const PAGE_BYTES_MAX = 24 * 1024 * 1024;
/** Maximum bytes of the texts of the calls before a page that its calls may continue. */
const BEFORE_BYTES_MAX = 8 * 1024 * 1024;
const PAGE_CALLS_MAX = 200;
const BEFORE_CALLS_MAX = 50;
const PAGE_TOOLS_MAX = 1000;
/** Maximum parents of a span that are looked at. */
const ANCESTORS_MAX = 64;

/** A call or tool with its place in the tree. */
export interface PlacedRow extends CallRow {
  /** Number of the span, by which ancestors name it. */
  span: number;
  ancestors: readonly number[];
  /** True if its texts are larger than a page may hold. */
  omitted: boolean;
}

/** Number of the root that all spans share. */
const ABOVE_ALL = -1;

/** Returns the rows with their ancestors, from the ids and parents of all spans of the trace. */
export function placedRows(
  rows: readonly CallRow[],
  family: { span_id: readonly string[]; parent_span_id: readonly string[] },
): PlacedRow[] {
  const parents = parentsOf(family.span_id, family.parent_span_id);
  const numbers = new Map<string, number>();
  for (const [span, id] of family.span_id.entries()) if (!numbers.has(id)) numbers.set(id, span);
  return rows.map((row, index) => {
    const span = numbers.get(row.span_id) ?? family.span_id.length + index;
    const ancestors: number[] = [];
    for (let at = parents[span] ?? -1; at !== -1 && ancestors.length < ANCESTORS_MAX; at = parents[at] ?? -1)
      ancestors.push(at);
    return { ...row, span, ancestors: [...ancestors, ABOVE_ALL], omitted: row.bytes > PAGE_BYTES_MAX };
  });
}

export interface Page {
  /** Number of model calls of the trace. */
  total: number;
  before: PlacedRow[];
  calls: PlacedRow[];
  tools: PlacedRow[];
  more: boolean;
}

const position = z.tuple([z.int(), z.string().regex(/^\d{1,20}$/), z.int(), z.int()]);
type Position = z.infer<typeof position>;

/** Returns the cursor of the page after these calls. */
export function cursorAfter(calls: readonly PlacedRow[]): string | null {
  const last = calls.at(-1);
  return last === undefined ? null : encodeCursor(positionOf(last));
}

const positionOf = (row: CallRow): Position => [row.started_ms, row.log_seq, row.log_index, row.log_sub];

/** @throws ApiError invalid_request for a cursor that no page returned */
export function choosePage(rows: readonly PlacedRow[], cursor: string | undefined): Page {
  const calls = rows.filter(({ kind }) => kind === 'llm');
  const after = cursor === undefined ? null : decodeCursor(cursor, position);
  const from = after === null ? 0 : countUpTo(calls, after);
  const own: PlacedRow[] = [];
  let bytes = 0;
  for (const call of calls.slice(from, from + PAGE_CALLS_MAX)) {
    const size = sizeOf(call);
    if (own.length > 0 && bytes + size > PAGE_BYTES_MAX) break;
    own.push(call);
    bytes += size;
  }
  const next = calls[from + own.length];
  return {
    total: calls.length,
    before: newestWithin(calls.slice(0, from)),
    calls: own,
    tools: toolsOf(rows, own[0], next, PAGE_BYTES_MAX - bytes),
    more: next !== undefined,
  };
}

const sizeOf = ({ bytes, omitted }: PlacedRow): number => (omitted ? 0 : bytes);

function countUpTo(calls: readonly PlacedRow[], [ms, seq, index, sub]: Position): number {
  const later = calls.findIndex((call) => {
    if (call.started_ms !== ms) return call.started_ms > ms;
    if (call.log_seq !== seq) return BigInt(call.log_seq) > BigInt(seq);
    return call.log_index === index ? call.log_sub > sub : call.log_index > index;
  });
  return later === -1 ? calls.length : later;
}

/** Returns the newest calls within the bounds, in their order. */
function newestWithin(calls: readonly PlacedRow[]): PlacedRow[] {
  const chosen: PlacedRow[] = [];
  let bytes = 0;
  for (const call of calls.slice(-BEFORE_CALLS_MAX).toReversed()) {
    bytes += sizeOf(call);
    if (bytes > BEFORE_BYTES_MAX) break;
    chosen.push(call);
  }
  return chosen.toReversed();
}

/** Returns the tools that started between the first call of the page and the first of the next page. */
function toolsOf(
  rows: readonly PlacedRow[],
  first: PlacedRow | undefined,
  next: PlacedRow | undefined,
  bytesMax: number,
): PlacedRow[] {
  if (first === undefined) return [];
  const within = rows.filter(
    ({ kind, started_ms }) =>
      kind === 'tool' && started_ms >= first.started_ms && (next === undefined || started_ms < next.started_ms),
  );
  let bytes = 0;
  return within.slice(0, PAGE_TOOLS_MAX).map((tool) => {
    const fits = bytes + tool.bytes <= bytesMax;
    if (fits) bytes += tool.bytes;
    return fits ? tool : { ...tool, omitted: true };
  });
}
