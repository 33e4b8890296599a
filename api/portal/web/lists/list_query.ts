// The parameters that a list sends to the API: the filters of its URL and the two ends of its time
// range. A relative range becomes absolute once for all requests of one load, so that rows, counts and
// histogram cover the same time.
import { filterNamed } from './filters.ts';
import { escapedValue, type ListUrl, type Range, type TimeRange } from './list_url.ts';

const HOUR_MS = 3_600_000;
const RANGE_MS: Readonly<Record<Range, number>> = {
  '1h': HOUR_MS,
  '6h': 6 * HOUR_MS,
  '24h': 24 * HOUR_MS,
  '7d': 7 * 24 * HOUR_MS,
  '30d': 30 * 24 * HOUR_MS,
  '90d': 90 * 24 * HOUR_MS,
};

/** Relative ranges end at this grain, so that the same range asked twice in it is one cached query. */
const GRAIN_MS = 1_000;

/** Parameters of a request. The values of a list stand in one parameter, as in the URL of the page. */
export type Query = Record<string, string>;

export interface Span {
  /** Milliseconds since the epoch; null where the range is open. */
  since_ms: number | null;
  until_ms: number | null;
}

/** Returns both ends of a time range. The end of a relative range is open: new traces belong to it. */
export function spanOf(time: TimeRange, now_ms: number): Span {
  if ('last' in time) {
    const end = Math.ceil(now_ms / GRAIN_MS) * GRAIN_MS;
    return { since_ms: end - RANGE_MS[time.last], until_ms: null };
  }
  return {
    since_ms: time.since === null ? null : Date.parse(time.since),
    until_ms: time.until === null ? null : Date.parse(time.until),
  };
}

/** Returns the filters and the time range as parameters of the API, without sort and paging. */
export function filterQuery(state: ListUrl, now_ms: number): Query {
  const query: Query = {};
  for (const [name, values] of state.filters)
    query[name] = filterNamed(name)?.spec.multiple === true ? values.map(escapedValue).join(',') : values.join(',');
  const { since_ms, until_ms } = spanOf(state.time, now_ms);
  if (since_ms !== null) query['since'] = new Date(since_ms).toISOString();
  if (until_ms !== null) query['until'] = new Date(until_ms).toISOString();
  return query;
}
