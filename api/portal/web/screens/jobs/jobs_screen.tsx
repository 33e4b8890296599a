// The long jobs of the organization: restores from cold storage, and erasures.
import { useInfiniteQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { codec, optionalChoice } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import lists from '../sessions/sessions.module.css';
import { isOpen, type Job, jobPath, jobsQuery, kindWords, POLL_MS, useLiveJobs } from './job_data.ts';
import { Progress, STATUS_WORDS, StatusMark } from './job_marks.tsx';

const STATUSES = ['queued', 'running', 'complete', 'failed'] as const;
const KINDS = ['restore', 'erase'] as const;
const CODEC = codec({ status: optionalChoice(STATUSES), kind: optionalChoice(KINDS) });
type State = ReturnType<typeof CODEC.parse>;

/** The page. */
export default function JobsScreen(): ReactElement {
  const { org_id } = useOrganization();
  const [state, change] = useSearchState(CODEC);
  const { status, kind } = state;
  const pages = useInfiniteQuery({
    ...jobsQuery(org_id, { status, kind }),
    refetchInterval: (query) => (query.state.data?.pages[0]?.data.some(isOpen) === true ? POLL_MS : false),
  });
  useLiveJobs(org_id);
  usePageRequest('/v1/jobs');
  const rows = useMemo(() => pages.data?.pages.flatMap(({ data }) => data) ?? [], [pages.data]);
  const total = pages.data?.pages[0]?.meta.total;
  return (
    <div className={lists.screen}>
      <div className={lists.tools}>
        <span className={lists.total} role="status">
          {total === undefined ? '' : `${count(total)} ${total === 1 ? 'job' : 'jobs'}`}
        </span>
        <Filters state={state} onChange={change} />
      </div>
      {pages.error !== null && pages.data === undefined ? (
        <div className={lists.state}>
          <ErrorPanel error={pages.error} what="the jobs" onRetry={() => void pages.refetch()} />
        </div>
      ) : total === 0 ? (
        <div className={lists.state}>
          <NoJobs org_id={org_id} filtered={status !== null || kind !== null} />
        </div>
      ) : (
        <ListTable
          label="Jobs"
          noun="job"
          address={`jobs ${status ?? ''} ${kind ?? ''}`}
          rows={rows}
          rowKey={jobIdOf}
          columns={(narrow) => columnsOf(org_id, narrow)}
          hrefOf={({ job_id }) => jobPath(org_id, job_id)}
          pages={pages}
          total={total}
          loading={pages.isPending}
        />
      )}
    </div>
  );
}

interface FiltersProps {
  state: State;
  onChange: (patch: Partial<State>) => void;
}

function Filters({ state: { status, kind }, onChange }: FiltersProps): ReactElement {
  return (
    <>
      {STATUSES.map((one) => (
        <Chip
          key={one}
          pressed={status === one}
          onToggle={() => {
            onChange({ status: status === one ? null : one });
          }}
        >
          {STATUS_WORDS[one]}
        </Chip>
      ))}
      {KINDS.map((one) => (
        <Chip
          key={one}
          pressed={kind === one}
          onToggle={() => {
            onChange({ kind: kind === one ? null : one });
          }}
        >
          {kindWords(one)}
        </Chip>
      ))}
    </>
  );
}

function NoJobs({ org_id, filtered }: { org_id: string; filtered: boolean }): ReactElement {
  if (filtered)
    return (
      <EmptyState
        title="No job matches these filters"
        action={<Link href={`/o/${encodeURIComponent(org_id)}/jobs`}>Show all jobs</Link>}
      />
    );
  return (
    <EmptyState title="No jobs in the last 90 days">
      A restore of texts from cold storage and an erasure run as jobs. An owner of the organization starts them.
    </EmptyState>
  );
}

const jobIdOf = ({ job_id }: Job): string => job_id;

function columnsOf(org_id: string, narrow: boolean): Column<Job>[] {
  const name = ({ job_id, kind }: Job): ReactElement => (
    <Link href={jobPath(org_id, job_id)} className={lists.name} tabIndex={-1} title={job_id}>
      {kindWords(kind)}
    </Link>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Job',
        width: 'minmax(0, 1fr)',
        cell: (job) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{name(job)}</span>
              <StatusMark status={job.status} />
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>
                <Progress progress={job.progress} />
              </span>
              <Moment at={job.created_at} />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'kind', head: 'Job', width: 'minmax(200px, 2fr)', cell: name },
    { id: 'id', head: 'Id', width: 'minmax(160px, 1fr)', cell: ({ job_id }) => job_id },
    { id: 'status', head: 'State', width: '112px', cell: ({ status }) => <StatusMark status={status} /> },
    { id: 'progress', head: 'Progress', width: '200px', cell: ({ progress }) => <Progress progress={progress} /> },
    { id: 'created', head: 'Created', width: '136px', cell: ({ created_at }) => <Moment at={created_at} /> },
    { id: 'ended', head: 'Ended', width: '136px', cell: ({ ended_at }) => <Moment at={ended_at} /> },
  ];
}
