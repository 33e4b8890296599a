// The first reads of the list of traces: rows and histogram for the state that an address names.
import { queryClient, readAhead } from '../client/query_client.ts';
import type { Query } from './list_query.ts';
import { parseListUrl } from './list_url.ts';
import { seriesQuery } from './series.ts';
import { loadQuery, tracePagesQuery } from './use_trace_rows.ts';

const BUCKETS_MAX = 120;

/** Describes the read of the histogram of a list. */
export const tracesHistogramQuery = (org_id: string, query: Query) => ({
  ...seriesQuery(org_id, query, BUCKETS_MAX),
  staleTime: Infinity,
});

/**
 * Asks for the rows and the histogram.
 * @param search query string of the address
 */
export function beginTraces(org_id: string, search: string): void {
  const state = parseListUrl(search);
  const query = loadQuery(state);
  readAhead(queryClient.infiniteQuery(tracePagesQuery(org_id, query, state.sort)));
  readAhead(queryClient.query(tracesHistogramQuery(org_id, query)));
}
