// The requests of the trace screen.
import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query';
import { type Answer, apiQuery, get } from '../../client/api.ts';
import { errorOfAnswer, errorOfThrown } from '../../client/error.ts';
import { FRESH } from '../../client/query_client.ts';

export type SpanDetail = Answer<'/v1/traces/{trace_id}/spans/{span_id}'>['data'];
export type Conversation = Answer<'/v1/traces/{trace_id}/conversation'>;
export type Step = Conversation['data']['steps'][number];
export type Score = SpanDetail['scores'][number];

/** Spans whose details stay in memory after they were left, milliseconds. */
const SPAN_KEPT_MS = 300_000;

/** Describes the read of the outline; that of an open trace is never fresh. */
export const outlineQuery = (org_id: string, trace_id: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/traces/{trace_id}/outline', { path: { trace_id } }),
    staleTime: ({ state }) => (state.data?.data.complete === true ? FRESH.complete_trace : 0),
    refetchOnWindowFocus: ({ state }) => state.data?.data.complete !== true,
  });

export const spanQuery = (org_id: string, trace_id: string, span_id: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/traces/{trace_id}/spans/{span_id}', { path: { trace_id, span_id } }),
    staleTime: FRESH.complete_trace,
    gcTime: SPAN_KEPT_MS,
  });

const CONVERSATION = '/v1/traces/{trace_id}/conversation';

/** Describes the read of the conversation, by page. */
export const conversationQuery = (org_id: string, trace_id: string) =>
  infiniteQueryOptions({
    queryKey: [org_id, CONVERSATION, trace_id],
    queryFn: ({ pageParam, signal }): Promise<Conversation> => {
      const query = pageParam === null ? {} : { cursor: pageParam };
      return get(org_id, CONVERSATION, { path: { trace_id }, query }, { signal });
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ meta }) => meta.next_cursor,
    staleTime: FRESH.complete_trace,
  });

/** Describes the search in the texts of a trace. */
export const matchesQuery = (org_id: string, trace_id: string, q: string) =>
  queryOptions({
    ...apiQuery(org_id, '/v1/traces/{trace_id}/matches', { path: { trace_id }, query: { q } }),
    staleTime: FRESH.complete_trace,
  });

export type TextSide = 'prompt' | 'response';

/** Returns the address of a whole text. */
export const textAddress = (trace_id: string, span_id: string, side: TextSide): string =>
  `/v1/traces/${encodeURIComponent(trace_id)}/spans/${encodeURIComponent(span_id)}/texts/${side}`;

/**
 * Reads a whole text, however long it is.
 * @throws RequestError
 */
async function readText(org_id: string, address: string, signal: AbortSignal): Promise<string> {
  let answer: Response;
  try {
    answer = await fetch(address, { headers: { 'X-Org-Id': org_id, Accept: 'text/plain, application/json' }, signal });
    if (answer.ok) return await answer.text();
  } catch (thrown) {
    throw errorOfThrown(thrown);
  }
  const body: unknown = await answer.json().catch(() => null);
  throw errorOfAnswer(answer.status, body, answer.headers);
}

export const textQuery = (org_id: string, trace_id: string, span_id: string, side: TextSide) => {
  const address = textAddress(trace_id, span_id, side);
  return queryOptions({
    queryKey: [org_id, address],
    queryFn: ({ signal }) => readText(org_id, address, signal),
    staleTime: FRESH.complete_trace,
    // Whole texts may be megabytes: they leave memory soon after their panel.
    gcTime: 30_000,
  });
};
