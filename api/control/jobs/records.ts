// Long jobs that somebody asked for: creates them, finds them and serves their routes. A job that
// was returned to a caller is durable and will run.
import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { type JobRecords, OPEN_JOBS_MAX } from '../../../ops/exchange/job_records.ts';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { OPERATOR_JOBS } from '../../../schemas/records/org_deletion.ts';
import {
  JOB_STATUSES,
  jobView,
  type JobView,
  type LongJob,
  newLongJob,
  RESTORE,
} from '../../../schemas/records/job_record.ts';
import { ERASE } from '../../../schemas/records/erasure.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf } from '../../http/list_pages.ts';
import { offsetQuery, pageMeta } from '../../http/pagination.ts';
import { defineOperatorRoute, defineRoute, type Route } from '../../http/route.ts';

const TAG = 'Jobs';
const JOB_ID = /^job_[0-9a-f]{16}$/;
/** Kinds of long jobs by which the list can be filtered. */
const JOB_KINDS = [RESTORE, ERASE] as const;

export interface JobRecordsDeps {
  records: JobRecords;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Creates a long job for a worker to run.
 *
 * @throws ApiError conflict when the organization has OPEN_JOBS_MAX open jobs, upstream_unavailable
 */
export async function createJob(
  { records, now }: JobRecordsDeps,
  { org_id, kind, args }: Pick<LongJob, 'org_id' | 'kind' | 'args'>,
): Promise<JobView> {
  checkOpenJobs({ records }, org_id);
  const job_id = `job_${randomBytes(8).toString('hex')}`;
  const job = newLongJob({ job_id, org_id, kind, args, created_at: new Date(now()).toISOString() });
  try {
    await records.forgetOldest(org_id);
    await records.create(job);
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The job could not be stored. Try again.', { cause });
  }
  return viewOf(job);
}

/**
 * Creates a job under a given id, unless it exists.
 *
 * @throws ApiError upstream_unavailable
 */
export async function createJobOnce(
  { records, now }: JobRecordsDeps,
  given: Pick<LongJob, 'org_id' | 'job_id' | 'kind' | 'args'>,
): Promise<JobView> {
  const job = newLongJob({ ...given, created_at: new Date(now()).toISOString() });
  try {
    await records.create(job);
  } catch (cause) {
    if (!(cause instanceof RevisionConflict))
      throw new ApiError('upstream_unavailable', 'The job could not be stored. Try again.', { cause });
  }
  return viewOf(job);
}

/**
 * Returns a job of an organization, or null if there is none.
 *
 * @throws ApiError upstream_unavailable
 */
export async function findJob(
  { records }: Pick<JobRecordsDeps, 'records'>,
  org_id: string,
  job_id: string,
): Promise<JobView | null> {
  // Another text may be an invalid key of the bucket, or the key of something else.
  if (!JOB_ID.test(job_id)) return null;
  const job = await records.find(org_id, job_id).catch((cause: unknown) => {
    throw new ApiError('upstream_unavailable', 'The job cannot be looked up. Try again.', { cause });
  });
  return job === null ? null : viewOf(job);
}

/**
 * Returns the route by which the operator polls a job: one of the operator's own, or of any
 * organization.
 */
export function operatorJobRoutes(deps: JobRecordsDeps): Route[] {
  return [getOperatorJobRoute(deps)];
}

function getOperatorJobRoute(deps: JobRecordsDeps): Route {
  return defineOperatorRoute({
    method: 'get',
    path: '/admin/jobs/:job_id',
    operation_id: 'getOperatorJob',
    summary: 'Get a job of any organization',
    description:
      'Returns a job of the operator or of any organization. Jobs are kept for 90 days; the jobs of an organization are deleted with it.',
    tag: 'Operator',
    params: z.object({ job_id: z.string() }),
    response: jobView,
    errors: ['job_not_found', 'upstream_unavailable'],
    handler: async ({ params: { job_id } }) => {
      const owner = deps.records.all().find((job) => job.job_id === job_id)?.org_id ?? OPERATOR_JOBS;
      const job = await findJob(deps, owner, job_id);
      if (job === null) throw new ApiError('job_not_found', 'There is no job of this id.');
      return { data: job };
    },
  });
}

/** @throws ApiError conflict when the organization has OPEN_JOBS_MAX open jobs */
export function checkOpenJobs({ records }: Pick<JobRecordsDeps, 'records'>, org_id: string): void {
  const open = records.all(org_id).filter(({ status }) => status === 'queued' || status === 'running');
  if (open.length >= OPEN_JOBS_MAX)
    throw new ApiError(
      'conflict',
      `The organization has ${open.length} jobs queued or running, the most that it can have. Wait until one ends.`,
    );
}

/** Returns a job as responses show it, without its arguments and the worker that runs it. */
function viewOf(job: LongJob): JobView {
  const { job_id, kind, status, progress, result, error, created_at, started_at, ended_at } = job;
  return { job_id, kind, status, progress, result, error, created_at, started_at, ended_at };
}

export function jobRecordRoutes(deps: JobRecordsDeps): Route[] {
  return [listJobsRoute(deps), getJobRoute(deps)];
}

function listJobsRoute({ records }: JobRecordsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/jobs',
    operation_id: 'listJobs',
    summary: 'List jobs',
    description:
      'Returns the long jobs of the organization (restores and erasures), newest first. Ended jobs are kept for 90 days, and at most the newest 1,000 of them.',
    tag: TAG,
    permission: 'jobs:read',
    query: z
      .object({ ...offsetQuery, kind: z.enum(JOB_KINDS).optional(), status: z.enum(JOB_STATUSES).optional() })
      .strip(),
    response: z.array(jobView),
    meta: pageMeta,
    handler: ({ org_id, query }) => {
      const { kind, status } = query;
      const found = records
        .all(org_id)
        .filter((job) => (kind === undefined || job.kind === kind) && (status === undefined || job.status === status))
        .toSorted((a, b) => (a.created_at < b.created_at ? 1 : -1));
      const { data, meta } = pageOf(found, query);
      return { data: data.map(viewOf), meta };
    },
  });
}

function getJobRoute({ records }: JobRecordsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/jobs/:id',
    operation_id: 'getJob',
    summary: 'Get a job',
    description: 'Returns the status and progress of a long job, and its result once it is complete.',
    tag: TAG,
    permission: 'jobs:read',
    params: z.object({ id: z.string() }),
    response: jobView,
    errors: ['job_not_found', 'upstream_unavailable'],
    handler: async ({ org_id, params }) => {
      const job = await findJob({ records }, org_id, params.id);
      if (job === null) throw new ApiError('job_not_found', 'There is no job of this id.');
      return { data: job };
    },
  });
}
