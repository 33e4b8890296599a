// The rows of the trace list: pages of 100 by cursor, and what the live stream changes in them. Pages
// are asked for once; the stream, and a look at the newest page when the tab comes back, bring what is
// new, so thousands of rows are never loaded again.
import { infiniteQueryOptions, keepPreviousData, useInfiniteQuery } from '@tanstack/react-query';
import { useCallback, useState } from 'react';
import { type Answer, get } from '../client/api.ts';
import { filterQuery, type Query } from './list_query.ts';
import { sameQuery, writeListUrl, type ListUrl } from './list_url.ts';
import { loadTime, renewLoadTime } from './load_time.ts';
import { noRows, ROWS_MAX, rowsOfPages, withBatch, withWaitingShown, type Rows } from './rows.ts';
import type { TraceItem } from './trace_data.ts';

const PAGE = 100;
const PAGES_MAX = ROWS_MAX / PAGE;

type Page = Answer<'/v1/traces'>;

const loadKey = (state: ListUrl): string =>
  writeListUrl({ ...state, cols: null, peek: null, live: false, view: null, rest: [], sort: 'started_at' });

/** Returns the parameters that rows, counts and histogram of one load share. */
export const loadQuery = (state: ListUrl): Query => filterQuery(state, loadTime(loadKey(state), Date.now()));

/** Returns these parameters, and the function that makes them end now. */
export function useLoadQuery(state: ListUrl): { query: Query; renew: () => void } {
  const key = loadKey(state);
  const [, setRenewed] = useState(0);
  const renew = useCallback(() => {
    renewLoadTime(key, Date.now());
    setRenewed((times) => times + 1);
  }, [key]);
  return { query: loadQuery(state), renew };
}

/** Describes the read of the pages of the list. */
export function tracePagesQuery(org_id: string, query: Query, sort: ListUrl['sort']) {
  const params = { ...query, ...(sort === 'started_at' ? {} : { sort }), limit: String(PAGE) };
  return infiniteQueryOptions({
    queryKey: [org_id, '/v1/traces', params],
    queryFn: ({ pageParam, signal }): Promise<Page> => {
      const paged = pageParam === null ? params : { ...params, cursor: pageParam };
      return get(org_id, '/v1/traces', { query: paged as object }, { signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: (last, pages) => (pages.length >= PAGES_MAX ? null : last.meta.next_cursor),
    staleTime: Infinity,
  });
}

/** Returns the pages of the list, loaded one after another. */
export const useTracePages = (org_id: string, query: Query, sort: ListUrl['sort']) =>
  useInfiniteQuery({ ...tracePagesQuery(org_id, query, sort), placeholderData: keepPreviousData });

export type TracePages = ReturnType<typeof useTracePages>;

/** Returns the newest traces that started at or after a time, and how many more there are. */
export async function readNewer(
  org_id: string,
  query: Query,
  since: string,
): Promise<{ rows: readonly TraceItem[]; dropped: number }> {
  const params = { ...query, since, limit: String(PAGE) };
  const { data, meta } = await get(org_id, '/v1/traces', { query: params as object });
  return { rows: data, dropped: Math.max(0, meta.total - data.length) };
}

export interface LiveRows extends Rows<TraceItem> {
  onBatch: (batch: readonly TraceItem[], dropped: number) => void;
  showWaiting: () => void;
}

interface Known {
  pages: readonly Page[] | undefined;
  state: ListUrl;
  rows: Rows<TraceItem>;
}

/**
 * Returns the rows of the pages with the changes of the live stream.
 * @param complete true if the last page is loaded
 */
export function useLiveRows(pages: readonly Page[] | undefined, state: ListUrl, complete: boolean): LiveRows {
  const [known, setKnown] = useState<Known>({ pages: undefined, state, rows: noRows() });
  let { rows } = known;
  if (known.pages !== pages || !sameQuery(known.state, state)) {
    const same = sameQuery(known.state, state) && continues(known.pages, pages);
    const lists = (pages ?? []).map(({ data }) => data);
    rows = same ? { ...rows, list: rowsOfPages([rows.list, ...lists]) } : { ...noRows(), list: rowsOfPages(lists) };
    setKnown({ pages, state, rows });
  }
  const onBatch = useCallback((batch: readonly TraceItem[], dropped: number) => {
    setKnown((now) => ({ ...now, rows: withBatch(now.rows, batch, dropped) }));
  }, []);
  const showWaiting = useCallback(() => {
    setKnown((now) => ({ ...now, rows: withWaitingShown(now.rows, complete) }));
  }, [complete]);
  return { ...rows, onBatch, showWaiting };
}

/** Returns true if the new pages begin with the page that the old ones begin with. */
const continues = (before: readonly Page[] | undefined, after: readonly Page[] | undefined): boolean =>
  before !== undefined && after !== undefined && before[0] === after[0];
