// Lists traces: newest first, with an exact total, in pages by offset or by cursor. A page reads a
// short period first and extends it only while the page is not full, so its cost depends neither on
// the number of traces nor on its depth. ranked.ts has the other orders.
import type { z } from 'zod';
import { cursorPage } from '../../http/list_pages.ts';
import { type TraceItem, traceItemOf } from '../../http/trace_items.ts';
import { ApiError } from '../../http/errors.ts';
import { filtersOf, isFiltered, type ListFilters } from './filters.ts';
import { amongTraces, tracesWithAttributes } from './found_once.ts';
import { withoutNeedlessReads } from './undescribed.ts';
import { foldPairs, pairRows, type Place, readLive } from './pairs.ts';
import { findPhrases, PHRASE_TRACES_MAX } from './phrases.ts';
import { rankTraces } from './ranked.ts';
import { cursorOf, type listMeta, type ListPosition, type ListQuery, positionOf } from './schema.ts';
import { countAmong, rowsAmong, tracesWithWords, type Worded, type WordsDeps } from './words.ts';
import { readHours, readPage, readPosition, readTotal, readWhole, type TotalRow, type TraceRow } from './store.ts';

export interface ListDeps extends WordsDeps {
  /** Milliseconds since the epoch. */
  now: () => number;
}

export interface TraceList {
  data: TraceItem[];
  meta: z.infer<typeof listMeta>;
}

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Periods that a page reads in turn; the last read has no bound. */
const STRETCHES_MS = [DAY_MS, 30 * DAY_MS, Infinity];
/** Periods of a list with filters, whose traces are rarer. */
const FILTERED_STRETCHES_MS = [7 * DAY_MS, 30 * DAY_MS, Infinity];
/** Filters whose traces are found wherever they are: one read without a bound costs less. */
const INDEXED = ['session_id', 'user_id', 'trace_ids', 'trace_keys'] as const;
/** A list shorter than this is read at once if the newest period did not fill the page. */
const FEW_TRACES = 5000;
/** Rows of a list up to which one statement returns its page and its total; two would look for the same traces. */
const SHORT_ROWS_MAX = 500;
/** The same for attributes of a short time: finding them takes longer than reading the rows of thousands of traces. */
const AT_ONCE_ROWS_MAX = 4000;
/** A list with more rows finds its attributes twice, so it must not be of a longer time. */
const AT_ONCE_MS_MAX = 7 * DAY_MS;

/** Serves GET /v1/traces. */
export async function listTraces(
  deps: ListDeps,
  orgId: string,
  query: ListQuery,
  signal: AbortSignal,
): Promise<TraceList> {
  const asked = filtersOf(orgId, query);
  const isFirst = query.cursor === undefined && query.offset === 0 && query.sort === 'started_at';
  const atOnce = isFirst && asksForRecentAttributes(asked, deps.now());
  const [{ undescribed }, worded, attributed] = await Promise.all([
    withoutNeedlessReads(deps.clickhouse, asked, { signal }),
    tracesWithWords(deps, asked, signal),
    atOnce ? null : tracesWithAttributes(deps.clickhouse, asked, { signal }),
  ]);
  const found: Worded = { ...worded, filters: { ...amongTraces(worded.filters, attributed), undescribed } };
  const { filters } = found;
  const given = query.cursor === undefined ? null : positionOf(query.cursor);
  if (given !== null && (given.rank?.by ?? 'started_at') !== query.sort)
    throw new ApiError('invalid_request', 'cursor: must be a cursor that this list has returned for the same sort');
  const { sort } = query;
  if (sort !== 'started_at') {
    const { rows, total } = await rankTraces(deps, filters, { ...query, sort }, given, signal);
    return answer(rows, total, given?.before ?? query.offset, query);
  }
  const phrases = query.search?.phrases ?? [];
  if (phrases.length > 0) return listByPhrase(deps, found, query, given, signal);
  if (given === null && query.offset > 0) return listByOffset(deps, found, query, signal);
  const short = given === null ? await listShort(deps, found, { atOnce, wanted: query.limit + 1 }, signal) : null;
  if (short !== null) return answer(short.rows.slice(0, query.limit + 1), short.total, 0, query);
  const total = countTraces(deps, found, signal);
  const [all, rows] = await Promise.all([total, readTraces(deps, found, given, query.limit + 1, signal, total)]);
  return answer(rows, all.total, given?.before ?? 0, query);
}

/** Returns true if a list asks for attributes of a short time, and for no words. */
const asksForRecentAttributes = ({ attributed, words, since_ms }: ListFilters, now: number): boolean =>
  attributed !== undefined && words === undefined && since_ms !== undefined && now - since_ms <= AT_ONCE_MS_MAX;

/**
 * Returns the first traces of a list that is expected to be short, and their number, from one statement if it is.
 * Null where the list is not expected to be short, and where the read rows have fewer traces than wanted.
 */
async function listShort(
  deps: ListDeps,
  found: Worded,
  { atOnce, wanted }: { atOnce: boolean; wanted: number },
  signal: AbortSignal,
): Promise<{ rows: TraceRow[]; total: number } | null> {
  const { filters, among } = found;
  const isShort = atOnce || (INDEXED.some((name) => filters[name] !== undefined) && filters.words === undefined);
  const rows = wanted + pairRows(wanted);
  const whole_rows = Math.max(atOnce ? AT_ONCE_ROWS_MAX : SHORT_ROWS_MAX, rows);
  if (!isShort || among !== null || (filters.trace_keys?.length ?? 0) >= whole_rows) return null;
  const read = await readWhole(deps.clickhouse, { ...filters, rows, whole_rows }, { signal });
  const cut = read.length === rows;
  const { live } = foldPairs(read, cut);
  if (cut && live.length < wanted) return null;
  const { total, all_rows } = read[0] ?? { total: 0, all_rows: 0 };
  return { rows: live, total: all_rows < whole_rows ? total : (await countTraces(deps, found, signal)).total };
}

async function countTraces(
  { clickhouse }: ListDeps,
  { filters, among }: Worded,
  signal: AbortSignal,
): Promise<TotalRow> {
  if (among !== null) return { total: await countAmong(clickhouse, filters, among, { signal }) };
  const [row] = await readTotal(clickhouse, filters, { signal });
  return row ?? { total: 0 };
}

/** @param rows the rows of the page, and one more if the list goes on */
function answer(rows: readonly TraceRow[], total: number, before: number, query: ListQuery): TraceList {
  const page = cursorPage(rows, {
    limit: query.limit,
    total,
    before,
    byCursor: query.cursor !== undefined,
    cursorAfter: (last, upTo) =>
      cursorOf({
        ...placeOf(last),
        before: upTo,
        ...(query.sort === 'started_at' ? {} : { rank: { by: query.sort, value: last.rank ?? 0 } }),
      }),
  });
  return { data: page.data.map(traceItemOf), meta: page.meta };
}

const placeOf = (row: TraceRow): { ms: number; key: string } => ({ ms: row.started_ms, key: row.trace_key });

/** Skips by the number of traces per hour, then within one hour. */
async function listByOffset(deps: ListDeps, found: Worded, query: ListQuery, signal: AbortSignal): Promise<TraceList> {
  const { filters } = found;
  const hours = await readHours(deps.clickhouse, filters, { signal });
  const total = hours.reduce((sum, hour) => sum + hour.traces, 0);
  let left = query.offset;
  for (const { hour_ms, traces } of hours) {
    if (left > traces) {
      left -= traces;
      continue;
    }
    const within = {
      ...filters,
      since_ms: Math.max(hour_ms, filters.since_ms ?? hour_ms),
      until_ms: Math.min(hour_ms + HOUR_MS - 1, filters.until_ms ?? Infinity),
    };
    const [place] = await readPosition(deps.clickhouse, { ...within, skipped_before: left - 1 }, { signal });
    // Traces that changed between the reads may leave the hour shorter than it was counted.
    const from = place === undefined ? { ms: hour_ms, key: '0' } : { ms: place.started_ms, key: place.trace_key };
    return answer(await readTraces(deps, found, from, query.limit + 1, signal), total, query.offset, query);
  }
  return answer([], total, query.offset, query);
}

/**
 * Returns the traces after a position, newest first; fewer than wanted only at the end of the list.
 *
 * @param total size of the whole list, if it is being counted: the traces of a short list may be
 * far apart, so it is not read period by period, and the counted traces are not searched for again
 */
export async function readTraces(
  deps: ListDeps,
  { filters: asked, among }: Worded,
  from: { ms: number; key: string } | null,
  wanted: number,
  signal: AbortSignal,
  total?: Promise<TotalRow>,
): Promise<TraceRow[]> {
  const filters = among === null ? asked : { ...asked, words: undefined };
  const found: TraceRow[] = [];
  const top = Math.min(from?.ms ?? Infinity, filters.until_ms ?? Infinity, deps.now());
  let place: Place | null = from === null ? null : { started_ms: from.ms, trace_key: from.key, version: '0' };
  const stretches = stretchesOf(filters);
  for (const stretch of stretches) {
    const floor = Math.max(top - stretch, filters.since_ms ?? -Infinity);
    const last = floor === filters.since_ms || stretch === Infinity;
    const isAwaited = stretch !== stretches[0] && (!last || filters.words !== undefined);
    const all = isAwaited ? await total : undefined;
    if (!last && all !== undefined && all.total < FEW_TRACES) continue;
    const bounded = { ...foundBy(filters, all), since_ms: Number.isFinite(floor) ? floor : undefined };
    const read = (after: Place | null, rows: number): Promise<TraceRow[]> =>
      readPage(deps.clickhouse, { ...bounded, ...afterRow(after, filters.until_ms), rows }, { signal });
    const keep = among === null ? undefined : (rows: readonly TraceRow[]) => rowsAmong(among, rows);
    const { live, place: reached } = await readLive(read, place, wanted - found.length, keep);
    found.push(...live);
    place = reached;
    if (last || found.length >= wanted) break;
  }
  return found.slice(0, wanted);
}

/** Returns the filters with the keys of the counted traces in place of the words, if these are few. */
function foundBy(filters: ListFilters, all: TotalRow | undefined): ListFilters {
  if (all?.trace_keys === undefined || (all.trace_keys.length === 0 && all.total > 0)) return filters;
  return { ...filters, words: undefined, trace_keys: all.trace_keys };
}

function stretchesOf(filters: ListFilters): readonly number[] {
  if (INDEXED.some((name) => filters[name] !== undefined)) return [Infinity];
  return isFiltered(filters) ? FILTERED_STRETCHES_MS : STRETCHES_MS;
}

/**
 * Returns the parameters of a page that begins after a row. Its time also bounds the reads of
 * spans, which have no order of traces.
 */
const afterRow = (place: Place | null, until_ms = Infinity) =>
  place === null
    ? {}
    : {
        from_ms: place.started_ms,
        from_key: place.trace_key,
        from_version: place.version,
        until_ms: Math.min(place.started_ms, until_ms),
      };

/**
 * Searches for phrases in the texts of traces that have their words, newest first, in a bounded
 * number of traces and bytes at a time. A page may be short or even empty while next_cursor leads on.
 */
async function listByPhrase(
  deps: ListDeps,
  found: Worded,
  query: ListQuery,
  given: ListPosition | null,
  signal: AbortSignal,
): Promise<TraceList> {
  const { words = [], phrases = [] } = query.search ?? {};
  const matches = async (from: { ms: number; key: string } | null) => {
    const candidates = await readTraces(deps, found, from, PHRASE_TRACES_MAX + 1, signal);
    const looked = candidates.slice(0, PHRASE_TRACES_MAX);
    const { rows, searched } = await findPhrases(
      { clickhouse: deps.clickhouse, org_id: found.filters.org_id, words, phrases, signal },
      looked,
    );
    return { rows, more: candidates.length > searched, last: looked[searched - 1] };
  };
  const [newest, here] = await Promise.all([matches(null), given === null ? null : matches(given)]);
  const before = given?.before ?? query.offset;
  const { rows, more, last } = here ?? newest;
  const list = answer(here === null ? rows.slice(query.offset) : rows, newest.rows.length, before, query);
  // An offset past the searched traces returns no cursor: pages by offset end there, and pages by
  // cursor go on.
  const isWithin = here !== null || query.offset <= rows.length;
  if (list.meta.next_cursor === null && more && last !== undefined && isWithin) {
    list.meta.next_cursor = cursorOf({ ...placeOf(last), before: before + list.data.length });
    if (list.meta.has_more !== undefined) list.meta.has_more = query.offset < rows.length || query.offset === 0;
  }
  if (newest.more) list.meta.truncated = true;
  return list;
}
