// The operator's route that deletes an organization: it closes the organization at once and starts
// a job that erases its data.
import { randomBytes } from 'node:crypto';
import type { OrgDeletions } from '../../../ops/exchange/org_deletions.ts';
import { jobView, type JobView, type LongJob } from '../../../schemas/records/job_record.ts';
import {
  DELETE_ORG,
  type DeleteOrgArgs,
  OPERATOR_JOBS,
  type OrgDeletion,
} from '../../../schemas/records/org_deletion.ts';
import { ApiError } from '../../http/errors.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineOperatorRoute, type Route } from '../../http/route.ts';
import { storeUnavailable } from './orgs.ts';
import type { OrgStore } from './store.ts';

const TAG = 'Operator';

export interface OrgDeletionDeps {
  orgs: Pick<OrgStore, 'get'>;
  deletions: Pick<OrgDeletions, 'get' | 'begin'>;
  /** The organization that the service creates at every start; it cannot be deleted. */
  bootstrapOrgId: string;
  /** Creates a job, unless it exists. @throws ApiError upstream_unavailable */
  begin: (job: Pick<LongJob, 'org_id' | 'job_id' | 'kind' | 'args'>) => Promise<JobView>;
  /** Returns the job of a deletion, or null. @throws ApiError upstream_unavailable */
  jobOf: (org_id: string, job_id: string) => Promise<JobView | null>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/**
 * Closes an organization and starts its erasure. While the erasure runs, a further call returns the
 * same job; after it failed, a new one.
 *
 * @returns the job, and whether this call started it
 * @throws ApiError org_not_found, conflict for the bootstrap organization, upstream_unavailable
 */
export async function deleteOrg(
  deps: OrgDeletionDeps,
  org_id: string,
  request_id: string,
): Promise<{ job: JobView; begun: boolean }> {
  const { orgs, deletions, bootstrapOrgId, begin, jobOf, now } = deps;
  if (org_id === bootstrapOrgId)
    throw new ApiError(
      'conflict',
      `The organization ${org_id} is created at every start (SERVICE_BOOTSTRAP_ORG_ID) and cannot be deleted.`,
    );
  const running = deletions.get(org_id);
  const isRunning = running?.state === 'running';
  if (!isRunning && orgs.get(org_id) === null)
    throw new ApiError('org_not_found', `There is no organization ${org_id}.`);
  const last = isRunning ? await jobOf(OPERATOR_JOBS, running.job_id) : null;
  const asked: OrgDeletion = {
    org_id,
    job_id: `job_${randomBytes(8).toString('hex')}`,
    state: 'running',
    asked_at: new Date(now()).toISOString(),
    asked_by: 'operator',
    request_id,
    completed_at: null,
  };
  const mayReplace = ({ job_id }: OrgDeletion): boolean => job_id === last?.job_id && last.status === 'failed';
  const { record, begun } = await deletions.begin(asked, mayReplace).catch((cause: unknown) => {
    throw storeUnavailable(cause);
  });
  const known = begun ? null : await jobOf(OPERATOR_JOBS, record.job_id);
  if (known !== null) return { job: known, begun };
  // If the process dies here, the organization is closed and a worker creates the job.
  const args: DeleteOrgArgs = { org_id };
  return { job: await begin({ org_id: OPERATOR_JOBS, job_id: record.job_id, kind: DELETE_ORG, args }), begun };
}

export function orgDeletionRoutes(deps: OrgDeletionDeps): Route[] {
  return [deleteOrgRoute(deps)];
}

function deleteOrgRoute(deps: OrgDeletionDeps): Route {
  return defineOperatorRoute({
    method: 'delete',
    path: '/admin/orgs/:org_id',
    operation_id: 'deleteOrg',
    summary: 'Delete an organization',
    description:
      'Closes the organization and starts a job that erases it. Every process rejects its keys and members within a second and accepts none of its data. A worker then erases its data from the stores, the queues, the ingest log and cold storage, its audit log included, checks again, and reports what it found: poll `GET /admin/jobs/{job_id}`. This takes at least half a minute.\n\nRepeating the request returns the same job, or starts a new one if the job has failed. Until the job is complete, creating an organization with this `org_id` returns 409 `conflict`. The bootstrap organization (`SERVICE_BOOTSTRAP_ORG_ID`) cannot be deleted: 409 `conflict`. The audit log of the operator records the deletion, its time and its request.',
    tag: TAG,
    audit: { action: 'org.delete', target: 'org', param: 'org_id', operators: true },
    params: orgParams,
    status: 202,
    response: jobView,
    errors: ['org_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ request_id, params, audit }) => {
      const { job, begun } = await deleteOrg(deps, params.org_id, request_id);
      if (begun) audit.changes({ job_id: job.job_id });
      else audit.nothing();
      return { data: job };
    },
  });
}
