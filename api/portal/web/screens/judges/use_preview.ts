// The verdicts of a draft on real traces: the newest traces in its scope, and what the draft says of
// them. A rule is asked again 300 ms after its last change; a model only when the button is pressed.
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { randomId } from '../../client/random_id.ts';
import { fetchPreviews } from '../../lists/previews.ts';
import { bodyOf, type Draft, type DraftBody, escapedItems, missingIn } from './draft.ts';

const PAUSE_MS = 300;
const TRACES = 20;
const DAY_MS = 86_400_000;
/** Days from which traces are taken. */
const DAYS = 7;
/** Starts of time ranges are rounded, so that a range asked twice is one cached query. */
const GRAIN_MS = 60_000;

export type Preview = Awaited<ReturnType<typeof askPreview>>['data'];
export type ScopeTrace = Answer<'/v1/traces'>['data'][number];

/** Returns a value that changes once it has stayed the same for PAUSE_MS. */
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

const askPreview = (
  org_id: string,
  body: { draft: DraftBody; trace_ids: string[]; dry?: boolean },
  options: { signal?: AbortSignal; idempotencyKey?: string } = {},
) => send(org_id, 'post', '/v1/judges/preview', { body, ...options });

const sinceOf = (days: number): string =>
  new Date(Math.floor(Date.now() / GRAIN_MS) * GRAIN_MS - days * DAY_MS).toISOString();

/** Returns the traces in the scope of a draft: the newest, and how many there are of the last day. */
export function useScope(org_id: string, draft: Draft) {
  const { source_format, agent_id, tags } = draft;
  const scope = usePaused(JSON.stringify([source_format, agent_id, tags]));
  const query = useMemo(() => {
    const texts = JSON.parse(scope) as string[];
    const names = ['source_format', 'agent_id', 'tags'] as const;
    return Object.fromEntries(
      names.map((name, at) => [name, escapedItems(texts[at] ?? '')] as const).filter(([, list]) => list !== ''),
    );
  }, [scope]);
  const ask = (days: number, limit: number) => ({
    ...apiQuery(org_id, '/v1/traces', { query: { ...query, since: sinceOf(days), limit } }),
    staleTime: FRESH.registry,
    placeholderData: keepPreviousData,
  });
  const day = useQuery(ask(1, 1));
  const newest = useQuery(ask(DAYS, TRACES));
  const ids = useMemo(() => newest.data?.data.map(({ trace_id }) => trace_id) ?? [], [newest.data]);
  const texts = useQuery({
    queryKey: [org_id, 'scope previews', ids],
    queryFn: ({ signal }) => fetchPreviews(org_id, ids, signal),
    enabled: ids.length > 0,
    staleTime: FRESH.complete_trace,
    placeholderData: keepPreviousData,
  });
  return { query, inADay: day.data?.meta.total ?? null, newest, ids, texts: texts.data };
}

/** Returns the verdicts of a rule on traces, asked again after each change. */
export function useRulePreview(org_id: string, draft: Draft, trace_ids: readonly string[]) {
  const ready = draft.kind === 'deterministic' && Object.keys(missingIn(draft)).length === 0;
  // Its name and whether it is enabled do not change what a judge says.
  const body = useMemo(() => (ready ? JSON.stringify({ ...bodyOf(draft), ...UNJUDGED }) : null), [ready, draft]);
  const asked = usePaused(body);
  const query = useQuery({
    queryKey: [org_id, '/v1/judges/preview', asked, trace_ids],
    queryFn: ({ signal }) =>
      askPreview(org_id, { draft: JSON.parse(asked ?? '') as DraftBody, trace_ids: [...trace_ids] }, { signal }),
    enabled: asked !== null && trace_ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: FRESH.registry,
  });
  return { ready, waiting: asked !== body || query.isFetching, query };
}

const UNJUDGED = { name: 'Draft', enabled: true };

/** Returns the price of judging traces by a model, and the function that has them judged. */
export function useModelPreview(org_id: string, draft: Draft, trace_ids: readonly string[]) {
  const ready = draft.kind === 'llm' && Object.keys(missingIn(draft)).length === 0;
  const body = useMemo(() => (ready ? JSON.stringify({ ...bodyOf(draft), ...UNJUDGED }) : null), [ready, draft]);
  const asked = usePaused(body);
  const [key, setKey] = useState(randomId);
  const parsed = (): DraftBody => JSON.parse(asked ?? '') as DraftBody;
  const price = useQuery({
    queryKey: [org_id, '/v1/judges/preview', 'dry', asked, trace_ids],
    queryFn: ({ signal }) => askPreview(org_id, { draft: parsed(), trace_ids: [...trace_ids], dry: true }, { signal }),
    enabled: asked !== null && trace_ids.length > 0,
    placeholderData: keepPreviousData,
    staleTime: FRESH.registry,
  });
  const run = useMutation({
    mutationFn: () => askPreview(org_id, { draft: parsed(), trace_ids: [...trace_ids] }, { idempotencyKey: key }),
    onSettled: () => {
      setKey(randomId());
    },
  });
  return { ready: ready && asked === body, price, run };
}
