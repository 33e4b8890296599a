// The operator's list of the scheduled jobs: when each runs, and how its last run ended.
import { z } from 'zod';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../../ops/platform/nats/watch.ts';
import { JOB_NAMES, JOB_SCHEDULES } from '../../../schemas/job_schedules.ts';
import type { JobRecord } from '../../../schemas/records/job.ts';
import { ApiError } from '../../http/errors.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';

export interface ScheduledJobsDeps {
  log: Pick<Log, 'nc' | 'bucket'>;
  connected: () => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

const scheduledJob = z
  .object({
    name: z.string(),
    schedule: z.string().describe('Minute, hour, day of month, month, day of week; UTC'),
    running_on: z.string().nullable().describe('Worker that runs the job now'),
    last_started_at: z.iso.datetime().nullable(),
    last_ended_at: z.iso.datetime().nullable(),
    last_outcome: z.enum(['done', 'failed']).nullable().describe('null before the first run has ended'),
    failures: z.int().describe('Failed runs in a row for the next instant of the schedule'),
  })
  .meta({ id: 'ScheduledJob' });

export function scheduledJobRoutes(deps: ScheduledJobsDeps): Route[] {
  return [listScheduledJobsRoute(deps)];
}

function listScheduledJobsRoute({ log, connected, now }: ScheduledJobsDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/jobs',
    operation_id: 'listScheduledJobs',
    summary: 'List the scheduled jobs',
    description:
      'Returns every scheduled job with its schedule and its last run. POST /admin/jobs/{name}/run runs one now.',
    tag: 'Operator',
    response: z.array(scheduledJob),
    errors: ['upstream_unavailable'],
    handler: async () => {
      if (!connected()) throw unreachable(undefined);
      const records = await Promise.all(JOB_NAMES.map((name) => readRecord(log, 'jobs', name))).catch(
        (cause: unknown) => {
          throw unreachable(cause);
        },
      );
      return {
        data: JOB_NAMES.map((name, index) => ({
          name,
          schedule: JOB_SCHEDULES[name],
          ...stateOf(records[index] ?? null, now()),
        })),
      };
    },
  });
}

function stateOf(record: JobRecord | null, nowMs: number) {
  if (record === null)
    return { running_on: null, last_started_at: null, last_ended_at: null, last_outcome: null, failures: 0 };
  const { holder, deadline, last_started_at, last_ended_at, last_outcome, failures } = record;
  // The lease of a worker that died ends at its deadline.
  const runs = holder !== '' && deadline !== null && Date.parse(deadline) > nowMs;
  return { running_on: runs ? holder : null, last_started_at, last_ended_at, last_outcome, failures };
}

const unreachable = (cause: unknown): ApiError =>
  new ApiError('upstream_unavailable', 'The records of the jobs cannot be reached. Try again.', { cause });
