// Wiring of the deletion of organizations: the handler of the long job `delete_org`, and a regular
// check for deletions whose job was never stored.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { JobRecords } from '../../ops/exchange/job_records.ts';
import type { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import { RevisionConflict } from '../../ops/platform/nats/watched_bucket.ts';
import { newLongJob } from '../../schemas/records/job_record.ts';
import { DELETE_ORG, type DeleteOrgArgs, OPERATOR_JOBS } from '../../schemas/records/org_deletion.ts';
import { ErasureStore } from '../../sql/stores/erasure.ts';
import { ErasureOfShards } from '../../sql/stores/erasure_of_shards.ts';
import { OrgErasureOfShards, OrgErasureStore } from '../../sql/stores/org_erasure.ts';
import { takeLease } from '../erasure/erase.ts';
import { forgetOrg } from '../erasure/forget.ts';
import { eraseDeadLettersWhere, ingestEnd, purgeIngest } from '../erasure/logs.ts';
import { CorrectionLog } from '../jobs/correction_log.ts';
import { JobLeases } from '../jobs/lease.ts';
import type { LongJobHandler } from '../jobs/long_jobs.ts';
import { OrgBuckets } from '../org_deletion/buckets.ts';
import { createDeleteOrg, type DeleteOrgDeps } from '../org_deletion/delete_org.ts';
import { eraseQueued, isDeadLetterOf, purgeEvents } from '../org_deletion/queues.ts';
import { RETENTION } from '../retention/retention.ts';
import type { StoreParts, StoreUp } from './store.ts';

/**
 * Interval of the check. If the job of a deletion is missing in two checks in a row, the process
 * that accepted the deletion died before it stored the job.
 */
const LOOK_MS = 5000;

export interface OrgDeletionParts extends Omit<StoreParts, 'env' | 'clickhouse'>, Pick<StoreUp, 'sync'> {
  deletions: OrgDeletions;
  objects: ObjectStore;
  partitions: number;
  /** Called between two steps of a deletion, for tests. */
  step?: DeleteOrgDeps['step'];
  /** Factor by which waits and leases are shortened, for tests. */
  hurry?: number;
}

export interface OrgDeletionPart {
  /** Returns the handlers by kind of job. */
  handlers: (records: JobRecords) => Readonly<Record<string, LongJobHandler>>;
  stop: () => void;
}

export async function openOrgDeletion(parts: OrgDeletionParts): Promise<OrgDeletionPart> {
  const { log, store, workerId, onProblem, deletions, objects, partitions, sync, step, hurry = 1 } = parts;
  const leases = await JobLeases.open({ log, workerId, onProblem, hurry });
  const erasures = new ErasureOfShards(store.shards.map(({ clickhouse }) => new ErasureStore(clickhouse)));
  const landing = new CorrectionLog(log, partitions);
  let looking: NodeJS.Timeout | null = null;
  return {
    handlers: (records) => {
      looking ??= lookAfter(deletions, records, onProblem, LOOK_MS / hurry);
      return {
        [DELETE_ORG]: createDeleteOrg({
          deletions,
          store: new OrgErasureOfShards(store.shards.map(({ clickhouse }) => new OrgErasureStore(clickhouse))),
          forgetJobs: async (org_id) => {
            for (const { job_id } of records.all(org_id)) await erasures.forget(job_id);
          },
          buckets: new OrgBuckets(log),
          log: {
            end: () => ingestEnd(log, partitions),
            landed: (signal) => landing.untilLanded(signal),
            purge: (end) => purgeIngest(log, end),
            purgeEvents: (signal) => purgeEvents(log, signal),
            eraseQueued: (org_id, signal) => eraseQueued(log, org_id, signal),
            eraseDeadLetters: (isMeant, signal) => eraseDeadLettersWhere(log, isMeant, signal),
            isDeadLetterOf,
          },
          forget: (org_id, signal) => forgetOrg(log.nc, partitions, org_id, signal),
          eraseObjects: (org_id, signal) => eraseObjects(objects, org_id, signal),
          lease: (signal) => takeLease({ lease: () => leases.take(RETENTION) }, signal),
          sync,
          now: () => Date.now(),
          step,
          hurry,
        }),
      };
    },
    stop: () => {
      if (looking !== null) clearInterval(looking);
      leases.close();
    },
  };
}

/** Deletes every object below the organization's prefix, including objects that no table names. */
async function eraseObjects(objects: ObjectStore, org_id: string, signal: AbortSignal): Promise<number> {
  let erased = 0;
  for await (const { key } of objects.list(`org=${encodeURIComponent(org_id)}/`, signal)) {
    await objects.delete(key, signal);
    erased += 1;
  }
  return erased;
}

/**
 * Stores the missing job of a deletion whose process died after it closed the organization, so that
 * every closed organization is erased.
 */
function lookAfter(
  deletions: OrgDeletions,
  records: JobRecords,
  onProblem: ReportProblem,
  everyMs: number,
): NodeJS.Timeout {
  let before = new Set<string>();
  const look = async (): Promise<void> => {
    const missing = new Set<string>();
    for (const { org_id, job_id, asked_at } of deletions.running()) {
      if ((await records.find(OPERATOR_JOBS, job_id)) !== null) continue;
      missing.add(job_id);
      if (!before.has(job_id)) continue;
      const args: DeleteOrgArgs = { org_id };
      await records
        .create(newLongJob({ job_id, org_id: OPERATOR_JOBS, kind: DELETE_ORG, args, created_at: asked_at }))
        .catch(unlessThere);
    }
    before = missing;
  };
  return setInterval(() => {
    look().catch((cause: unknown) => {
      onProblem('deletions of organizations could not be checked; trying again', cause);
    });
  }, everyMs);
}

function unlessThere(error: unknown): void {
  if (!(error instanceof RevisionConflict)) throw error;
}
