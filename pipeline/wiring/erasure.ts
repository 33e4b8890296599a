// Wiring of erasure: the handler of the long job `erase`, and the answers to requests that this
// worker forget traces, events or organizations.
import { ErasureRequests } from '../../ops/exchange/erase_requests.ts';
import type { JobRecords } from '../../ops/exchange/job_records.ts';
import type { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord } from '../../ops/platform/nats/watch.ts';
import { ERASE } from '../../schemas/records/erasure.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { hashKeyContext, PII_KINDS } from '../../schemas/records/pii_policy.ts';
import { ErasureStore } from '../../sql/stores/erasure.ts';
import { ErasureOfShards } from '../../sql/stores/erasure_of_shards.ts';
import { storedForms } from '../domain/pii/erasure_values.ts';
import { deleteAnnotationItems } from '../erasure/annotations.ts';
import { createErase, type EraseDeps } from '../erasure/erase.ts';
import { answerForgets, forgetTraces } from '../erasure/forget.ts';
import { eraseDeadLetters, ingestEnd, purgeIngest } from '../erasure/logs.ts';
import { emptyOpenSamples } from '../erasure/samples.ts';
import { erasePendingScores, untilFolded } from '../erasure/waiting.ts';
import { CorrectionLog } from '../jobs/correction_log.ts';
import { JobLeases } from '../jobs/lease.ts';
import type { LongJobHandler } from '../jobs/long_jobs.ts';
import { RETENTION } from '../retention/retention.ts';
import type { PiiRules } from '../domain/pii/pii.ts';
import type { Worker } from '../worker/worker.ts';
import type { ShardCold } from './cold.ts';
import type { WorkerParts } from './parts.ts';
import type { StoreUp } from './store.ts';

export interface ErasureParts extends Omit<WorkerParts, 'env' | 'clickhouse'>, Pick<StoreUp, 'logBase' | 'sync'> {
  sealer: Sealer;
  /** Clients and cold storage of all shards, the first one first. */
  cold: readonly Pick<ShardCold, 'clickhouse' | 'cold'>[];
  partitions: number;
  worker: Pick<Worker, 'forgetTraces' | 'forgetEvents' | 'forgetOrg'>;
  deletions: Pick<OrgDeletions, 'isRunning'>;
  /** Called between two steps of an erasure, for tests. */
  step?: EraseDeps['step'];
  /** Factor by which leases are shortened, for tests. */
  hurry?: number;
}

export interface Erasure {
  /** Returns the handlers by kind of job. */
  handlers: (records: JobRecords) => Readonly<Record<string, LongJobHandler>>;
  stop: () => void;
}

export async function openErasure(parts: ErasureParts): Promise<Erasure> {
  const {
    log,
    logger,
    workerId,
    onProblem,
    sealer,
    cold,
    partitions,
    worker,
    deletions,
    logBase,
    sync,
    step,
    hurry = 1,
  } = parts;
  const leases = await JobLeases.open({ log, workerId, onProblem, hurry });
  const asks = await ErasureRequests.open(log, sealer);
  const corrections = new CorrectionLog(log, partitions);
  const shards = cold.map((shard) => ({ store: new ErasureStore(shard.clickhouse), cold: shard.cold }));
  const stopAnswers = answerForgets(
    log.nc,
    (partition, org_id, traceIds, what) => {
      if (what === 'traces') return worker.forgetTraces(partition, org_id, traceIds);
      if (what === 'events') return worker.forgetEvents(partition, org_id, traceIds);
      // The worker must have seen the deletion first: until then it still lands the events of the
      // organization that it reads.
      return deletions.isRunning(org_id) ? worker.forgetOrg(partition, org_id) : Promise.resolve(false);
    },
    logger,
  );
  return {
    handlers: (records) => ({
      [ERASE]: createErase({
        store: new ErasureOfShards(shards.map((shard) => shard.store)),
        shards,
        asks,
        formsOf: async (org_id, attribute, value) => storedForms(attribute, value, await rulesOf(log, sealer, org_id)),
        lease: () => leases.take(RETENTION),
        isOver: (job_id) =>
          records.all().some((job) => job.job_id === job_id && (job.status === 'complete' || job.status === 'failed')),
        log: {
          end: () => ingestEnd(log, partitions),
          folded: (org_id, signal) => untilFolded(log, org_id, signal),
          landed: (signal) => corrections.untilLanded(signal),
          purge: (end) => purgeIngest(log, end),
          erasePendingScores: (org_id, isMeant, signal) => erasePendingScores(log, org_id, isMeant, signal),
          eraseDeadLetters: (org_id, isMeant, signal) => eraseDeadLetters(log, org_id, isMeant, signal),
        },
        logBase,
        forget: (org_id, trace_ids, what, signal) =>
          forgetTraces(log.nc, partitions, { org_id, trace_ids: [...trace_ids], what }, signal),
        emptyOpenSamples: (org_id, samples) => emptyOpenSamples(log, org_id, samples),
        deleteAnnotationItems: (org_id, trace_ids) => deleteAnnotationItems(log, org_id, trace_ids),
        sync,
        step,
      }),
    }),
    stop: () => {
      stopAnswers();
      leases.close();
    },
  };
}

/**
 * Returns the rules by which the organization's telemetry may have been redacted: those of its
 * current policy, and all kinds. A policy that is disabled now counts too, because it may have been
 * enabled before. Without hashed values there are none (see storedForms).
 */
async function rulesOf(log: Log, sealer: Sealer, org_id: string): Promise<PiiRules[]> {
  const policy = await readRecord(log, 'pii_policies', orgKey(org_id));
  if (policy === null || policy.hash_key === null) return [];
  const { kinds, custom, hash_key } = policy;
  const key = Buffer.from(sealer.open(hash_key, hashKeyContext(org_id)), 'base64');
  return [
    { kinds, custom, hash_key: key },
    { kinds: PII_KINDS, custom: [], hash_key: key },
  ];
}
