// Evals as their screens read them: the records, kept current by the live stream, and names of judges.
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type Answer, apiQuery } from '../../client/api.ts';
import { FRESH } from '../../client/query_client.ts';
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

/** Returns the judges of the organization by id, for their names. */
export function useJudges(org_id: string) {
  const judges = useQuery({
    ...apiQuery(org_id, '/v1/judges', { query: { limit: 200 } }),
    staleTime: FRESH.registry,
  });
  return judges.data?.data ?? [];
}

/** Returns what an eval judges, in words. The id of the dataset comes last, because narrow columns cut the end. */
export function subjectWords({ dataset_id, prompt_version, model }: Eval): string {
  if (dataset_id === undefined) return 'Stored traces';
  return [model, prompt_version ?? 'inputs as they are', dataset_id].filter((part) => part !== undefined).join(' · ');
}
