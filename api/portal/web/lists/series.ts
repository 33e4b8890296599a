// Traces over time for the filters of a list.
import { type Answer, get } from '../client/api.ts';
import type { Bucket } from './histogram_shape.ts';
import type { Query } from './list_query.ts';

export type TraceSeries = Answer<'/v1/traces/series'>;

/**
 * Returns the read of the series for the filters of a list.
 * @param buckets maximum number of buckets, at least 2
 */
export function seriesQuery(org_id: string, filters: Query, buckets: number) {
  const query = { ...filters, buckets: String(buckets) };
  return {
    queryKey: [org_id, '/v1/traces/series', query] as const,
    queryFn: ({ signal }: { signal: AbortSignal }): Promise<TraceSeries> =>
      get(org_id, '/v1/traces/series', { query: query as object }, { signal }),
  };
}

/** Returns the buckets of a series that is not grouped. */
export function bucketsOf({ data, meta }: TraceSeries): { buckets: Bucket[]; bucket_ms: number } {
  const [series] = data.series;
  const buckets = data.buckets.map((start, at) => ({
    start_ms: Date.parse(start),
    traces: series?.traces[at] ?? 0,
    errors: series?.errors[at] ?? 0,
    timeouts: series?.timeouts[at] ?? 0,
  }));
  return { buckets, bucket_ms: meta.bucket_seconds * 1000 };
}
