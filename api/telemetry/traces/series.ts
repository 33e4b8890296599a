// Traces over time: takes the filters of the list, returns numbers of each bucket of time, split by
// the values of a field if asked. The number of buckets and of series is bounded, so the answer is
// too, whatever the period.
import type { z } from 'zod';
import { isExhausted } from '../../../sql/client/client.ts';
import type { QueryOptions } from '../../../sql/client/query.ts';
import { ApiError } from '../../http/errors.ts';
import { filtersOf, isFiltered } from './filters.ts';
import { foundOnce, INDEXED_SET_MAX } from './found_once.ts';
import { withoutNeedlessReads } from './undescribed.ts';
import type { WordsDeps } from './words.ts';
import type { Series, seriesMeta, SeriesQuery } from './series_schema.ts';
import { type Point, readCallSeries, readFirstTokens, readSeries, readTop, readTopModels } from './series_store.ts';

export interface SeriesDeps extends WordsDeps {
  /** Milliseconds since the epoch. */
  now: () => number;
}

export interface SeriesBounds {
  /** Milliseconds. */
  ms: number;
  memoryBytesMax: number;
}

const DAY_MS = 86_400_000;
const DEFAULT_MS = DAY_MS;
const DAYS_MAX = 400;
/** Bounds of the time of all reads, and of the engine memory of each. */
const BOUNDS: SeriesBounds = { ms: 10_000, memoryBytesMax: 400_000_000 };
/** Buckets of all named groups together, as many as those of the most groups that are found. */
const NAMED_POINTS_MAX = 8000;
const TOO_MUCH =
  'The store had too little time or memory for this series. Try again, or ask for a shorter time or fewer filters.';
/** Widths of buckets, milliseconds. */
const STEPS_MS = [1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 604_800, 2_592_000].map(
  (seconds) => seconds * 1000,
);

/**
 * Serves GET /v1/traces/series. @throws ApiError invalid_request; upstream_unavailable if the store
 * has too little time or memory for the series. Missing times to first token are marked instead.
 */
export async function traceSeries(
  deps: SeriesDeps,
  orgId: string,
  query: SeriesQuery,
  signal: AbortSignal,
  bounds: SeriesBounds = BOUNDS,
): Promise<{ data: Series; meta: z.infer<typeof seriesMeta> }> {
  const { clickhouse, now } = deps;
  const { since, until } = periodOf(query, now());
  const step = stepOf(since, until, query.buckets);
  const { group_by } = query;
  const named = namedGroups(query);
  const asked = await withoutNeedlessReads(clickhouse, filtersOf(orgId, { ...query, since, until }), { signal });
  const filters = await foundOnce(deps, asked, { signal });
  const grouped = {
    ...filters,
    since_ms: since,
    until_ms: until,
    ...(isFiltered(filters) ? { filtered: true as const } : {}),
    [`by_${group_by ?? 'none'}`]: true,
  };
  const isModel = group_by === 'model';
  const bucketed = { ...grouped, step_ms: step, ...(named === undefined ? {} : { named: true as const }) };
  const top = async (options: QueryOptions): Promise<string[]> => {
    if (group_by === undefined) return [''];
    if (named !== undefined) return named;
    const read = isModel ? readTopModels : readTop;
    return (await read(clickhouse, { ...grouped, rows: query.top }, options)).map(({ value }) => value);
  };
  const [[groups, points], firstTokens] = await readWithin(bounds, signal, {
    async series(options) {
      const values = await top(options);
      const read = isModel ? readCallSeries : readSeries;
      return [values, await read(clickhouse, { ...bucketed, top: values }, options)] as const;
    },
    async firstTokens(options) {
      return named === undefined ? readFirstTokens(clickhouse, { ...bucketed, top: [] }, options) : null;
    },
  });
  const buckets = bucketsBetween(since, until, step);
  return {
    data: {
      buckets: buckets.map((bucket) => new Date(bucket * step).toISOString()),
      series: seriesOf(buckets, groups, points),
      time_to_first_token: firstTokens && {
        p50_ms: quantileOf(buckets, firstTokens, 0),
        p95_ms: quantileOf(buckets, firstTokens, 1),
      },
    },
    meta: {
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      bucket_seconds: step / 1000,
      partial: named === undefined && firstTokens === null,
      approximate: [
        'p50_duration_ms',
        'p95_duration_ms',
        'p99_duration_ms',
        'time_to_first_token',
        ...(isModel ? ['traces', 'errors', 'timeouts'] : []),
      ],
    },
  };
}

/**
 * Runs the reads beside each other. Times to first token that exceed the bounds are null.
 * @throws ApiError upstream_unavailable if the series exceed the bounds
 */
async function readWithin<S, T>(
  bounds: SeriesBounds,
  signal: AbortSignal,
  reads: { series: (options: QueryOptions) => Promise<S>; firstTokens: (options: QueryOptions) => Promise<T | null> },
): Promise<[S, T | null]> {
  const timeout = AbortSignal.timeout(bounds.ms);
  const options = {
    signal: AbortSignal.any([signal, timeout]),
    memoryBytesMax: bounds.memoryBytesMax,
    indexedSetMax: INDEXED_SET_MAX,
  };
  const isTooMuch = (error: unknown): boolean => !signal.aborted && (timeout.aborted || isExhausted(error));
  return Promise.all([
    reads.series(options).catch((error: unknown) => {
      throw isTooMuch(error) ? new ApiError('upstream_unavailable', TOO_MUCH, { cause: error }) : error;
    }),
    reads.firstTokens(options).catch((error: unknown) => {
      if (isTooMuch(error)) return null;
      throw error;
    }),
  ]);
}

/**
 * Returns the values that get a series each; undefined where those with the most traces do.
 * @throws ApiError invalid_request without group_by, and for more numbers than a response has
 */
function namedGroups({ group_by, groups, buckets }: SeriesQuery): string[] | undefined {
  if (groups === undefined || groups.length === 0) return undefined;
  if (group_by === undefined) throw new ApiError('invalid_request', 'groups: needs group_by');
  const most = Math.floor(NAMED_POINTS_MAX / groups.length);
  if (buckets > most)
    throw new ApiError('invalid_request', `buckets: must be at most ${most} with ${groups.length} groups`);
  return [...new Set(groups)];
}

/** @throws ApiError invalid_request for a period that is too long or ends before it begins */
function periodOf(query: SeriesQuery, now: number): { since: number; until: number } {
  const until = query.until ?? Math.max(now, query.since ?? now);
  const since = query.since ?? until - DEFAULT_MS;
  if (since > until) throw new ApiError('invalid_request', 'since: must not be after until');
  if (until - since > DAYS_MAX * DAY_MS)
    throw new ApiError('invalid_request', `since: must be at most ${DAYS_MAX} days before until`);
  return { since, until };
}

function bucketsBetween(since: number, until: number, step: number): number[] {
  const first = Math.floor(since / step);
  return Array.from({ length: Math.floor(until / step) - first + 1 }, (_, i) => first + i);
}

/** Returns the smallest width that divides the period into at most `buckets`. */
function stepOf(since: number, until: number, buckets: number): number {
  const fits = (step: number): boolean => Math.floor(until / step) - Math.floor(since / step) < buckets;
  const longest = STEPS_MS.at(-1) ?? DAY_MS;
  return STEPS_MS.find(fits) ?? Math.ceil((until - since) / (buckets - 1) / longest) * longest;
}

function seriesOf(buckets: readonly number[], groups: readonly string[], points: readonly Point[]): Series['series'] {
  const places = new Map(buckets.map((bucket, place) => [bucket, place]));
  const empty = (group: string | null, other: boolean): Series['series'][number] => {
    const zeros = (): number[] => buckets.map(() => 0);
    const nulls = (): null[] => buckets.map(() => null);
    return {
      group,
      other,
      traces: zeros(),
      errors: zeros(),
      timeouts: zeros(),
      cost_usd: zeros(),
      input_tokens: zeros(),
      output_tokens: zeros(),
      p50_duration_ms: nulls(),
      p95_duration_ms: nulls(),
      p99_duration_ms: nulls(),
    };
  };
  const top = new Map(groups.map((value) => [value, empty(value === '' ? null : value, false)]));
  const others = empty(null, true);
  for (const point of points) {
    const place = places.get(point.bucket);
    const own = point.other ? others : top.get(point.grp);
    if (place === undefined || own === undefined) continue;
    own.traces[place] = point.traces;
    own.errors[place] = point.errors;
    own.timeouts[place] = point.timeouts;
    own.cost_usd[place] = point.cost_usd;
    own.input_tokens[place] = point.input_tokens;
    own.output_tokens[place] = point.output_tokens;
    own.p50_duration_ms[place] = point.quantiles[0] ?? null;
    own.p95_duration_ms[place] = point.quantiles[1] ?? null;
    own.p99_duration_ms[place] = point.quantiles[2] ?? null;
  }
  return [...top.values(), ...(points.some(({ other }) => other) ? [others] : [])];
}

function quantileOf(
  buckets: readonly number[],
  points: readonly { bucket: number; quantiles: readonly (number | null)[] }[],
  which: number,
): (number | null)[] {
  const byBucket = new Map(points.map(({ bucket, quantiles }) => [bucket, quantiles[which] ?? null]));
  return buckets.map((bucket) => byBucket.get(bucket) ?? null);
}
