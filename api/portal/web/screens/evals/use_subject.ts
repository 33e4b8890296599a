// Turns the choices of the form into the request that starts an eval, and asks what it would cost.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { apiQuery, get, send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { filterQuery } from '../../lists/list_query.ts';
import { parseListUrl } from '../../lists/list_url.ts';
import type { Subject } from './subject_fields.tsx';

const PAUSE_MS = 300;
const PAGE = 200;
/** Traces that are taken from a list at most. */
const LISTED_MAX = 2000;
const SAMPLE_MAX = 100_000;
const WEEK_MS = 7 * 86_400_000;
const GRAIN_MS = 60_000;

interface TracesBody {
  judge_id: string;
  trace_ids?: string[];
  sample?: { limit: number; since: string };
}

type EvalRequest =
  | { kind: 'traces'; body: TracesBody }
  | { kind: 'dataset'; dataset_id: string; body: { judge_id: string; prompt_version?: string; model?: string } };

/** Returns the request that starts the eval, null while the form lacks something, and its price. */
export function useSubject(org_id: string, judge_id: string | null, subject: Subject) {
  const paused = usePaused(subject);
  const listed = useListedIds(org_id, paused);
  const ids = paused.kind === 'query' ? listed.data : idsOf(paused);
  const body = useMemo(() => tracesBody(judge_id, paused, ids), [judge_id, paused, ids]);
  const estimate = useQuery({
    queryKey: [org_id, '/v1/evals/estimate', body],
    queryFn: ({ signal }) => send(org_id, 'post', '/v1/evals/estimate', { body: body ?? missing(), signal }),
    enabled: body !== null,
    staleTime: FRESH.registry,
    placeholderData: keepPreviousData,
  });
  const dataset = useQuery({
    ...apiQuery(org_id, '/v1/datasets', { query: { limit: PAGE } }),
    staleTime: FRESH.registry,
    enabled: paused.kind === 'dataset',
  });
  const items =
    paused.kind === 'dataset'
      ? (dataset.data?.data.find(({ dataset_id }) => dataset_id === paused.dataset_id)?.item_count ?? null)
      : null;
  return {
    request: paused === subject ? requestOf(judge_id, paused, body) : null,
    estimate: body === null ? null : (estimate.data?.data ?? null),
    items,
    loading: listed.isFetching || estimate.isFetching,
    error: listed.error ?? (body === null ? null : estimate.error),
  };
}

const missing = (): never => {
  throw new Error('there is nothing to estimate');
};

function usePaused<T>(value: T): T {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      setPaused(value);
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
    };
  }, [value]);
  return paused;
}

/** Returns the ids of the newest traces that the query of a list finds. */
function useListedIds(org_id: string, { kind, query, limit }: Subject) {
  const most = Math.min(LISTED_MAX, Number(limit));
  const from = useMemo(() => Math.floor(Date.now() / GRAIN_MS) * GRAIN_MS, []);
  const params = filterQuery(parseListUrl(query), from);
  return useQuery({
    queryKey: [org_id, 'trace ids of a list', params, most],
    queryFn: async ({ signal }) => {
      const ids: string[] = [];
      let cursor: string | null = null;
      do {
        const page: { limit: number; cursor?: string } = { limit: Math.min(PAGE, most - ids.length) };
        if (cursor !== null) page.cursor = cursor;
        const { data, meta } = await get(org_id, '/v1/traces', { query: { ...params, ...page } }, { signal });
        ids.push(...data.map(({ trace_id }) => trace_id));
        cursor = meta.next_cursor;
      } while (cursor !== null && ids.length < most);
      return ids;
    },
    enabled: kind === 'query' && most > 0,
    staleTime: FRESH.registry,
  });
}

const idsOf = ({ kind, ids }: Subject): string[] | undefined =>
  kind === 'ids'
    ? [
        ...new Set(
          ids
            .split(/[\s,]/)
            .map((id) => id.trim())
            .filter((id) => id !== ''),
        ),
      ]
    : undefined;

function tracesBody(judge_id: string | null, { kind, limit }: Subject, ids: string[] | undefined): TracesBody | null {
  if (judge_id === null || kind === 'dataset') return null;
  if (kind !== 'sample') return ids === undefined || ids.length === 0 ? null : { judge_id, trace_ids: ids };
  const most = Number(limit);
  if (!Number.isInteger(most) || most < 1 || most > SAMPLE_MAX) return null;
  const since = new Date(Math.floor(Date.now() / GRAIN_MS) * GRAIN_MS - WEEK_MS).toISOString();
  return { judge_id, sample: { limit: most, since } };
}

function requestOf(judge_id: string | null, subject: Subject, body: TracesBody | null): EvalRequest | null {
  if (subject.kind !== 'dataset') return body === null ? null : { kind: 'traces', body };
  const { dataset_id, prompt_version, model } = subject;
  if (judge_id === null || dataset_id === '' || (prompt_version === '' && model.trim() === '')) return null;
  return {
    kind: 'dataset',
    dataset_id,
    body: {
      judge_id,
      ...(prompt_version === '' ? {} : { prompt_version }),
      ...(model.trim() === '' ? {} : { model: model.trim() }),
    },
  };
}
