// Lists of traces by duration, cost or tokens, the largest first. The engine has no order for them,
// so such a list covers a bounded time, which one read ranks.
import { ApiError } from '../../http/errors.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { ListFilters } from './filters.ts';
import { type Place, readLive } from './pairs.ts';
import type { ListPosition, ListQuery, Ranking } from './schema.ts';
import { readRanked, readRankedPosition, readTotal, type TraceRow } from './store.ts';

const DAY_MS = 86_400_000;
const RANKED_DAYS_MAX = 31;

const FLAGS = { duration_ms: { by_duration: true }, cost_usd: { by_cost: true }, tokens: { by_tokens: true } } as const;

export interface RankedPage {
  /** The traces of the page, and one more if the list goes on. */
  rows: TraceRow[];
  total: number;
}

/**
 * Returns a page of a ranked list.
 *
 * @throws ApiError invalid_request if the list has no bounded time, or searches for phrases
 */
export async function rankTraces(
  { clickhouse, now }: { clickhouse: ClickHouse; now: () => number },
  filters: ListFilters,
  query: ListQuery & { sort: Ranking },
  given: ListPosition | null,
  signal: AbortSignal,
): Promise<RankedPage> {
  checkRanked(query, now());
  const ranked = { ...filters, ...FLAGS[query.sort] };
  const read = (after: Place | null, rows: number) =>
    readRanked(clickhouse, { ...ranked, ...afterRow(after), rows }, { signal });
  const skipped = given === null ? query.offset : 0;
  const start = async (): Promise<Place | null | 'past the end'> => {
    if (skipped === 0) return placeOf(given);
    const [row] = await readRankedPosition(clickhouse, { ...ranked, skipped_before: skipped - 1 }, { signal });
    return row === undefined ? 'past the end' : { ...row, version: '0' };
  };
  const page = async (): Promise<TraceRow[]> => {
    const from = await start();
    if (from === 'past the end') return [];
    const { live } = await readLive(read, from, query.limit + 1);
    return live.slice(0, query.limit + 1);
  };
  const [[counted], rows] = await Promise.all([readTotal(clickhouse, filters, { signal }), page()]);
  return { rows, total: counted?.total ?? 0 };
}

function checkRanked({ sort, since, until, search }: ListQuery, now: number): void {
  if ((search?.phrases.length ?? 0) > 0)
    throw new ApiError('invalid_request', 'sort: must be started_at if search has a quoted phrase');
  const days = since === undefined ? Infinity : (Math.max(until ?? now, since) - since) / DAY_MS;
  if (days > RANKED_DAYS_MAX)
    throw new ApiError(
      'invalid_request',
      `since: must be at most ${RANKED_DAYS_MAX} days before until, or before now without until, if sort is ${sort}`,
    );
}

const placeOf = (given: ListPosition | null): Place | null =>
  given === null
    ? null
    : { started_ms: given.ms, trace_key: given.key, version: '0', rank: given.rank?.value ?? Infinity };

const afterRow = (place: Place | null) =>
  place === null
    ? {}
    : {
        from_rank: place.rank,
        from_ms: place.started_ms,
        from_key: place.trace_key,
        from_version: place.version,
      };
