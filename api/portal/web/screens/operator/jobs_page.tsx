// The scheduled jobs: when each runs, how its last run ended, and a run now or as of another time.
import { useMutation, useQuery } from '@tanstack/react-query';
import { Fragment, type ReactElement, useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { queryClient } from '../../client/query_client.ts';
import { formErrors } from '../costs/field_error.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, duration } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { cx } from '../../ui/cx.ts';
import { Chip } from '../../ui/chip.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { Moment } from '../../ui/moment.tsx';
import { FormDialog } from './form_dialog.tsx';
import styles from './operator.module.css';
import { SmallTable } from '../judges/small_table.tsx';
import { scheduleWords } from './schedule_words.ts';
import { Waiting } from './waiting.tsx';

type Job = Answer<'/admin/jobs'>['data'][number];
type Run = Awaited<ReturnType<typeof runJob>>['data'];

/** Time between two readings of the list; a run that begins shows within it. */
const REFRESH_MS = 5000;
const QUERY = apiQuery(null, '/admin/jobs', {});
/** Work of each job, in words. */
const WORK: Readonly<Record<string, string>> = {
  'agent-drift': 'Marks agents that send nothing any more',
  alerts: 'Notifies of budgets whose run rate reaches a threshold',
  anomalies: 'Finds days whose cost is out of the ordinary',
  'budget-period': 'Starts the periods of budgets',
  forecast: 'Forecasts the cost of each organization',
  incidents: 'Resolves incidents that are over',
  monitors: 'Evaluates monitors',
  reprice: 'Finishes interrupted repricings',
  retention: 'Moves texts to cold storage, and deletes what is past its time',
};

/** The page. */
export default function JobsPage(): ReactElement {
  const jobs = useQuery({ ...QUERY, refetchInterval: REFRESH_MS });
  const [asked, setAsked] = useState<Job | null>(null);
  usePageRequest('/admin/jobs');
  if (jobs.data === undefined) return <Waiting query={jobs} what="the jobs" rows={9} />;
  return (
    <div className={styles.page}>
      <SmallTable
        label="Scheduled jobs"
        heads={['Job', 'Runs', 'Last run', 'Result', 'Actions']}
        rows={jobs.data.data.map((job) => ({
          key: job.name,
          cells: [
            <span className={styles.lines}>
              <span className={styles.name}>{job.name}</span>
              <span className={cx(styles.quiet, styles.wrap)}>{WORK[job.name] ?? ''}</span>
            </span>,
            <span title={`${job.schedule} (UTC)`}>{scheduleWords(job.schedule)}</span>,
            <LastRun job={job} />,
            <Result job={job} />,
            <Button
              icon="play"
              onClick={() => {
                setAsked(job);
              }}
            >
              Run {job.name}
            </Button>,
          ],
        }))}
      />
      {asked !== null && (
        <RunDialog
          name={asked.name}
          onClose={() => {
            setAsked(null);
          }}
        />
      )}
    </div>
  );
}

function LastRun({ job }: { job: Job }): ReactElement {
  const { last_started_at: start, last_ended_at: end } = job;
  if (start === null) return <span className={styles.quiet}>not yet</span>;
  const ms = end === null ? null : Date.parse(end) - Date.parse(start);
  return (
    <span>
      <Moment at={start} form="ago" />
      {ms !== null && ms >= 0 && <span className={styles.quiet}> · {duration(ms)}</span>}
    </span>
  );
}

function Result({ job }: { job: Job }): ReactElement {
  if (job.running_on !== null) return <Chip tone="accent">running on {job.running_on}</Chip>;
  if (job.last_outcome === null) return <span className={styles.quiet}>none yet</span>;
  if (job.last_outcome === 'done') return <span>done</span>;
  return <Chip tone="error">{job.failures > 1 ? `failed ${count(job.failures)} times in a row` : 'failed'}</Chip>;
}

interface RunDialogProps {
  name: string;
  onClose: () => void;
}

function RunDialog({ name, onClose }: RunDialogProps): ReactElement {
  const [at, setAt] = useState('');
  const run = useMutation({
    mutationFn: () => runJob(name, at),
    onSettled: () => queryClient.invalidateQueries({ queryKey: QUERY.queryKey }),
  });
  if (run.data !== undefined) return <RunResult name={name} run={run.data.data} onClose={onClose} />;
  const errors = formErrors(run.error, ['now']);
  return (
    <FormDialog
      title={`Run ${name}`}
      action={run.isPending ? 'Running …' : 'Run job'}
      isReady
      isBusy={run.isPending}
      refusal={errors.form}
      onSend={run.mutate}
      onClose={onClose}
    >
      <Field
        label="As of (UTC)"
        hint="Empty: now. A worker runs the job, and this dialog waits up to 110 seconds for its end."
        error={errors.fields.now ?? null}
      >
        {(control) => (
          <Input
            {...control}
            type="datetime-local"
            value={at}
            onChange={({ target }) => {
              setAt(target.value);
            }}
          />
        )}
      </Field>
    </FormDialog>
  );
}

/**
 * Runs a job.
 * @param at time as of which it runs, as the field writes it; empty: now
 */
const runJob = (name: string, at: string) =>
  send(null, 'post', '/admin/jobs/{name}/run', {
    params: { path: { name } },
    body: at === '' ? {} : { now: `${at}:00.000Z` },
  });

function RunResult({ name, run, onClose }: RunDialogProps & { run: Run }): ReactElement {
  return (
    <Dialog
      title={`Run ${name}`}
      onClose={onClose}
      footer={
        <Button look="primary" onClick={onClose}>
          Close
        </Button>
      }
    >
      <div className={styles.section}>
        <p role="status">
          {name} is done in {duration(Date.parse(run.ended_at) - Date.parse(run.started_at))}.
        </p>
        <dl className={styles.facts}>
          {Object.entries(run.result).map(([field, value]) => (
            <Fragment key={field}>
              <dt>{field}</dt>
              <dd>{typeof value === 'string' ? value : JSON.stringify(value)}</dd>
            </Fragment>
          ))}
        </dl>
      </div>
    </Dialog>
  );
}
