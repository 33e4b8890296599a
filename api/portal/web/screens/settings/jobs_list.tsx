// The long jobs of one kind with their progress. The list is read again while one of them runs.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Moment } from '../../ui/moment.tsx';
import numbers from '../../ui/number_table.module.css';
import costs from '../costs/costs.module.css';
import { isOpen, type Job, jobPath, POLL_MS, useLiveJobs } from '../jobs/job_data.ts';
import { Progress, StatusMark } from '../jobs/job_marks.tsx';
import { Loaded } from './parts.tsx';

export const JOBS_PATH = '/v1/jobs';

const SHOWN_MAX = 20;

interface JobsListProps {
  kind: 'restore' | 'erase';
  /** Says that there is none. */
  none: string;
  /** Name of the table. */
  label: string;
}

/** The list. */
export function JobsList({ kind, none, label }: JobsListProps): ReactElement {
  const { org_id } = useOrganization();
  const jobs = useQuery({
    ...apiQuery(org_id, JOBS_PATH, { query: { kind, limit: SHOWN_MAX } }),
    refetchInterval: ({ state }) => (state.data?.data.some(isOpen) === true ? POLL_MS : false),
  });
  useLiveJobs(org_id);
  return (
    <Loaded query={jobs} what="the jobs" rows={2}>
      {({ data }) =>
        data.length === 0 ? <p className={costs.note}>{none}</p> : <JobTable jobs={data} label={label} />
      }
    </Loaded>
  );
}

function JobTable({ jobs, label }: { jobs: readonly Job[]; label: string }): ReactElement {
  const { org_id } = useOrganization();
  return (
    <div className={numbers.scroll} role="region" aria-label={label} tabIndex={0}>
      <table className={numbers.table}>
        <thead>
          <tr>
            <th scope="col">Job</th>
            <th scope="col" className={numbers.words}>
              Status
            </th>
            <th scope="col" className={numbers.words}>
              Result
            </th>
            <th scope="col">Started</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.job_id}>
              <th scope="row">
                <Link href={jobPath(org_id, job.job_id)}>{job.job_id}</Link>
              </th>
              <td className={numbers.words}>
                <StatusMark status={job.status} /> {job.status === 'running' && <Progress progress={job.progress} />}
              </td>
              <td className={numbers.words}>{resultWords(job)}</td>
              <td>
                <Moment at={job.created_at} form="ago" />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Returns what a job did, in the numbers that its result names; or why it failed. */
function resultWords({ error, result }: Job): string {
  if (error !== null) return oneLine(error);
  const numbersOf = Object.entries(result ?? {}).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  );
  return numbersOf.length === 0
    ? '–'
    : numbersOf.map(([name, value]) => `${name.replaceAll('_', ' ')}: ${count(value)}`).join(', ');
}
