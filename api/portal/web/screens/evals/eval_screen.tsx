// One eval: its progress and results, the distribution of its scores, and each judged item with the
// reason, the input, the answer and the expectation.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import { apiQuery, send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization, whenPermitted } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { CopyButton } from '../../ui/copy_button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Select } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import styles from '../judges/judges.module.css';
import { VerdictBar } from '../judges/verdicts.tsx';
import lists from '../sessions/sessions.module.css';
import { meanText, stateWords } from './eval_columns.tsx';
import {
  type Eval,
  judgesQuery,
  pollWhile,
  subjectWords,
  useDatasetNames,
  useJudges,
  useLiveEvals,
} from './eval_data.ts';
import { EvalItems } from './eval_items.tsx';

const evalQuery = (org_id: string, eval_id: string) => apiQuery(org_id, '/v1/evals/{eval_id}', { path: { eval_id } });

/** Starts the requests of the page. */
export const preload: Preload = ({ org_id, params: { eval_id = '' } }) => {
  const begin = (): void => {
    readAhead(queryClient.query(evalQuery(org_id, eval_id)));
    readAhead(queryClient.query(judgesQuery(org_id)));
  };
  readAhead(whenPermitted(org_id, 'judges:read', begin));
};

/** The page. */
export default function EvalScreen(): ReactElement {
  const { org_id } = useOrganization();
  const eval_id = useRouteParams()('eval_id');
  const { data, error, refetch } = useQuery({
    ...evalQuery(org_id, eval_id),
    refetchInterval: ({ state }) => pollWhile(state.data === undefined ? [] : [state.data.data]),
  });
  useLiveEvals(org_id);
  usePageRequest(`/v1/evals/${encodeURIComponent(eval_id)}`);
  const judges = useJudges(org_id);
  const one = data?.data;
  const judge = judges.find(({ judge_id }) => judge_id === one?.judge_id)?.name ?? one?.judge_id ?? null;
  usePageTitle(judge === null ? null : `Eval by ${judge}`);
  if (one === undefined)
    return (
      <div className={lists.page}>
        {error === null ? (
          <Skeleton rows={8} height={20} />
        ) : (
          <ErrorPanel error={error} what="the eval" onRetry={() => void refetch()} />
        )}
      </div>
    );
  return (
    <div className={lists.screen}>
      <Head one={one} judge={judge ?? one.judge_id} />
      <EvalItems one={one} />
    </div>
  );
}

function Head({ one, judge }: { one: Eval; judge: string }): ReactElement {
  const { org_id, can } = useOrganization();
  const org = `/o/${encodeURIComponent(org_id)}`;
  const datasets = useDatasetNames();
  const { stats } = one;
  const facts: [string, ReactElement | string][] = [
    [
      'Judge',
      <Link key="judge" href={`${org}/judges/${encodeURIComponent(one.judge_id)}`}>
        {judge} v{one.judge_version}
      </Link>,
    ],
    ['Judged', subjectWords(one, datasets)],
    ['State', stateWords(one)],
    ['Items', count(one.queued_traces)],
    ['Mean', meanText(stats?.mean_score)],
    ['Median', meanText(stats?.p50_score)],
    ['Started', <Moment key="started" at={one.started_at} />],
  ];
  return (
    <div className={styles.head}>
      <dl className={lists.sums}>
        {facts.map(([label, value]) => (
          <div key={label}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {one.status === 'running' && (
        <progress
          className={styles.strip}
          aria-label="Progress of the eval"
          max={one.progress.total}
          value={one.progress.done}
        />
      )}
      {one.error !== null && <p role="alert">{one.error}</p>}
      {stats !== null && <VerdictBar counts={stats} />}
      <div className={styles.foot}>
        <CompareWith one={one} />
        {one.status === 'running' && can('judges:run') && <CancelButton eval_id={one.eval_id} />}
        <CopyButton text={one.eval_id} label="Copy the eval's id" />
      </div>
    </div>
  );
}

function CancelButton({ eval_id }: { eval_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const cancel = useMutation({
    mutationFn: () => send(org_id, 'post', '/v1/evals/{eval_id}/cancel', { params: { path: { eval_id } } }),
    onSuccess: () => {
      toast({ text: 'The eval was cancelled. The scores so far stay.' });
    },
    onError: (error) => {
      toast({ tone: 'error', text: error instanceof RequestError ? error.detail : 'The eval was not cancelled.' });
    },
    onSettled: () => cache.invalidateQueries({ queryKey: [org_id, '/v1/evals/{eval_id}'] }),
  });
  return (
    <Button
      icon="x"
      busy={cancel.isPending}
      onClick={() => {
        cancel.mutate();
      }}
    >
      Cancel eval
    </Button>
  );
}

/** Evals of the same judge over the same subject, of which one is compared with this one. */
function CompareWith({ one }: { one: Eval }): ReactElement | null {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const query = {
    judge_id: one.judge_id,
    limit: 50,
    ...(one.dataset_id === undefined ? {} : { dataset_id: one.dataset_id }),
  };
  const { data } = useQuery(apiQuery(org_id, '/v1/evals', { query: query }));
  const datasets = useDatasetNames();
  const others = useMemo(
    () => data?.data.filter((other) => other.eval_id !== one.eval_id && other.dataset_id === one.dataset_id) ?? [],
    [data, one],
  );
  // The newest that is older than this one is what it is most often compared with.
  const before = others.find(({ started_at }) => started_at < one.started_at) ?? others[0];
  const compare = (other: string): void => {
    const base = `/o/${encodeURIComponent(org_id)}/evals/compare`;
    navigate(`${base}/${encodeURIComponent(other)}/${encodeURIComponent(one.eval_id)}`);
  };
  useKeys('Eval', [
    {
      keys: 'c',
      label: 'Compare with the eval before',
      run: () => {
        if (before !== undefined) compare(before.eval_id);
      },
    },
  ]);
  if (before === undefined) return null;
  return (
    <>
      <Button
        icon="compare"
        keys="c"
        onClick={() => {
          compare(before.eval_id);
        }}
      >
        Compare with the eval before
      </Button>
      <Select
        aria-label="Compare with another eval"
        className={styles.short}
        value=""
        onChange={(event) => {
          if (event.currentTarget.value !== '') compare(event.currentTarget.value);
        }}
      >
        <option value="">Compare with another eval</option>
        {others.map((other) => (
          <option key={other.eval_id} value={other.eval_id}>
            {`${new Date(other.started_at).toISOString().slice(0, 16).replace('T', ' ')} UTC · ${subjectWords(other, datasets)} · mean ${meanText(other.stats?.mean_score)}`}
          </option>
        ))}
      </Select>
    </>
  );
}
