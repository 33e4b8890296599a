// The evals of a judge, newest first.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { count, exact } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';

/** The panel. */
export function JudgeEvals({ judge_id }: { judge_id: string }): ReactElement {
  const { org_id } = useOrganization();
  const evals = useQuery(apiQuery(org_id, '/v1/evals', { query: { judge_id, limit: 20 } }));
  const all = `/o/${encodeURIComponent(org_id)}/evals`;
  if (evals.error !== null)
    return <ErrorPanel error={evals.error} what="the evals" onRetry={() => void evals.refetch()} />;
  if (evals.data === undefined) return <Skeleton rows={4} height={32} />;
  const { data, meta } = evals.data;
  if (data.length === 0)
    return <EmptyState title="No evals">An eval runs the judge over stored traces or over a dataset.</EmptyState>;
  return (
    <>
      <ul className={lists.cards}>
        {data.map((one) => (
          <li key={one.eval_id} className={lists.card}>
            <Link className={lists.cardName} href={`${all}/${encodeURIComponent(one.eval_id)}`}>
              {one.eval_id}
            </Link>
            <span>{one.status}</span>
            <span>{count(one.queued_traces)} judged</span>
            <span>mean {exact(one.stats?.mean_score)}</span>
            <Moment at={one.started_at} />
          </li>
        ))}
      </ul>
      {meta.has_more && <Link href={`${all}?judge_id=${encodeURIComponent(judge_id)}`}>All evals of this judge</Link>}
    </>
  );
}
