// One long job: its state and progress while it runs, and its result or error when it has ended.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import { duration, exact } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { TextView } from '../../trace/text/text_view.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import lists from '../sessions/sessions.module.css';
import { isOpen, type Job, jobQuery, kindWords, POLL_MS, useLiveJobs } from './job_data.ts';
import { Progress, StatusMark } from './job_marks.tsx';
import styles from './jobs.module.css';

/** The page. */
export default function JobScreen(): ReactElement {
  const { org_id } = useOrganization();
  const job_id = useRouteParams()('job_id');
  const { data, error, refetch } = useQuery({
    ...jobQuery(org_id, job_id),
    refetchInterval: ({ state }) => (state.data !== undefined && isOpen(state.data.data) ? POLL_MS : false),
  });
  useLiveJobs(org_id);
  usePageTitle(data === undefined ? null : kindWords(data.data.kind));
  usePageRequest(`/v1/jobs/${encodeURIComponent(job_id)}`);
  if (data !== undefined) return <Shown job={data.data} />;
  return (
    <div className={lists.page}>
      {error === null ? (
        <Skeleton rows={6} height={20} />
      ) : (
        <ErrorPanel error={error} what="the job" onRetry={() => void refetch()} />
      )}
    </div>
  );
}

function Shown({ job }: { job: Job }): ReactElement {
  const { org_id, can } = useOrganization();
  const { started_at, ended_at } = job;
  const took = started_at === null || ended_at === null ? null : Date.parse(ended_at) - Date.parse(started_at);
  const facts: [string, ReactElement | string | null][] = [
    ['State', <StatusMark key="state" status={job.status} />],
    ['Progress', job.progress.total === 0 ? 'Not known yet' : <Progress key="progress" progress={job.progress} />],
    ['Id', <code key="id">{oneLine(job.job_id)}</code>],
    ['Created', <Moment key="created" at={job.created_at} />],
    ['Started', <Moment key="started" at={started_at} />],
    ['Ended', <Moment key="ended" at={ended_at} />],
    ['Took', duration(took)],
  ];
  return (
    <div className={lists.page}>
      <dl className={lists.sums}>
        {facts.map(([label, value]) => (
          <div key={label} className={styles.fact}>
            <dt>{label}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {isOpen(job) && (
        <p className={lists.quiet}>A worker runs the job. This page may be closed; the job goes on without it.</p>
      )}
      {job.error !== null && (
        <section className={lists.section}>
          <h2>Error</h2>
          <div className={styles.error}>
            <TextView text={job.error} label="Error" />
          </div>
        </section>
      )}
      {job.result !== null && <Result result={job.result} />}
      {can('audit:view') && (
        <Link href={`/o/${encodeURIComponent(org_id)}/audit?target_id=${encodeURIComponent(job.job_id)}&t=90d`}>
          Changes in the audit log
        </Link>
      )}
    </div>
  );
}

function Result({ result }: { result: Record<string, unknown> }): ReactElement {
  return (
    <section className={lists.section}>
      <h2>Result</h2>
      <dl className={lists.sums}>
        {Object.entries(result).map(([name, value]) => (
          <div key={name} className={styles.fact}>
            <dt>{oneLine(name.replaceAll('_', ' '))}</dt>
            <dd>
              {typeof value === 'number'
                ? exact(value)
                : oneLine(typeof value === 'string' ? value : JSON.stringify(value))}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
