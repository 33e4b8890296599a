// Evals as their screens read them: the records, kept current by the live stream, and names of judges.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import { type Answer, apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { useLiveTopic } from '../../live/use_live_topic.ts';

export type Eval = Answer<'/v1/evals/{eval_id}'>['data'];
export type Comparison = Answer<'/v1/evals/compare'>['data'];
export type ComparedItem = Comparison['items'][number];

/** Reads of evals are repeated this often while one runs: the stream may be cut off. */
const POLL_MS = 5000;

/** Returns the interval at which running evals are read again; false when none runs. */
export const pollWhile = (evals: readonly Eval[]): number | false =>
  evals.some(({ status }) => status === 'running') ? POLL_MS : false;

/** Reads evals again when the stream says that one has changed. */
export function useLiveEvals(org_id: string, onChange?: () => void): void {
  const cache = useQueryClient();
  useLiveTopic(org_id, 'evals', () => {
    void cache.invalidateQueries({
      predicate: ({ queryKey: [org, path] }) =>
        org === org_id && (path === '/v1/evals' || path === '/v1/evals/{eval_id}'),
    });
    onChange?.();
  });
}

/** Describes the read of the judges of the organization, for their names. */
export const judgesQuery = (org_id: string) => ({
  ...apiQuery(org_id, '/v1/judges', { query: { limit: 200 } }),
  staleTime: FRESH.registry,
});

/** Returns the judges of the organization. */
export const useJudges = (org_id: string) => useQuery(judgesQuery(org_id)).data?.data ?? [];

/** Returns the names of the newest datasets with their versions by id; none for a person who may not read datasets. */
export function useDatasetNames(): ReadonlyMap<string, string> {
  const { org_id, can } = useOrganization();
  const { data } = useQuery({
    ...apiQuery(org_id, '/v1/datasets', { query: { limit: 200 } }),
    staleTime: FRESH.registry,
    enabled: can('datasets:read'),
  });
  return useMemo(
    () => new Map((data?.data ?? []).map(({ dataset_id, name, version }) => [dataset_id, `${name} ${version}`])),
    [data],
  );
}

/** Returns what an eval judges, in words: the dataset by its name, or by its id where the name is not known. */
export function subjectWords({ dataset_id, prompt_version, model }: Eval, names: ReadonlyMap<string, string>): string {
  if (dataset_id === undefined) return 'Stored traces';
  const dataset = names.get(dataset_id) ?? dataset_id;
  return [dataset, prompt_version ?? 'inputs as they are', model].filter((part) => part !== undefined).join(' · ');
}
