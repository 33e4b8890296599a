// Wiring of cold storage: the object store, what the retention job needs, and the runner of long
// jobs.
import path from 'node:path';
import { JobRecords } from '../../ops/exchange/job_records.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import { openObjectStore } from '../../ops/platform/object_store/open.ts';
import { RESTORE } from '../../schemas/records/job_record.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { ColdTables } from '../../sql/stores/cold.ts';
import { RetentionStore } from '../../sql/stores/retention.ts';
import { ColdStorage } from '../cold/cold_storage.ts';
import { type ColdShard, createRestore } from '../cold/restore.ts';
import { type LongJobHandler, LongJobRunner } from '../jobs/long_jobs.ts';
import { announceDeletedTraces } from '../retention/deleted_traces.ts';
import { type RetentionPolicies, readRetentionPolicies } from '../settings/retention_policies.ts';
import type { ShardRetention } from '../retention/retention_of_shards.ts';
import type { WorkerParts } from './parts.ts';
import type { StoreParts } from './store.ts';

/** Cold storage of a shard, with the shard's client. */
export interface ShardCold extends ColdShard {
  clickhouse: ClickHouse;
}

export interface ColdParts {
  objects: ObjectStore;
  /** Cold storage of each shard of the store, in their order. */
  shards: readonly ShardCold[];
  /** Dependencies of the retention job, of each shard. */
  retention: readonly ShardRetention[];
}

/** Opens cold storage. It sends no request to the object store yet. */
export async function openCold({ env, log, store }: Pick<StoreParts, 'env' | 'log' | 'store'>): Promise<ColdParts> {
  const dataDir = path.resolve(env.SERVICE_DATA_DIR);
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  const objects = await openObjectStore({
    url: env.SERVICE_OBJECT_STORE ?? `file://${encodeURI(path.join(dataDir, 'cold'))}`,
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey },
  });
  const tempDir = path.join(dataDir, 'tmp');
  const parts = store.shards.map(({ name, clickhouse }) => {
    const tables = new ColdTables(clickhouse);
    const cold = new ColdStorage({ store: objects, tables, shard: name, tempDir, now: () => Date.now() });
    const deps = {
      store: new RetentionStore(clickhouse),
      tables,
      cold,
      policies: () => readRetentionPolicies(log),
      tracesDeleted: () => announceDeletedTraces(log.nc),
    };
    return { shard: { clickhouse, cold, tables }, retention: { name, deps } };
  });
  return { objects, shards: parts.map(({ shard }) => shard), retention: parts.map(({ retention }) => retention) };
}

/**
 * Starts the runner of long jobs: restores, and the kinds that `more` handles.
 *
 * @param more returns the handlers of other kinds
 */
export async function startLongJobs(
  { log, logger, workerId, onProblem }: WorkerParts,
  { shards }: ColdParts,
  policies: RetentionPolicies,
  more: (records: JobRecords) => Readonly<Record<string, LongJobHandler>>,
): Promise<{ stop: () => Promise<void> }> {
  const records = await JobRecords.open(log, onProblem);
  const now = (): number => Date.now();
  const isOpen = ({ status }: { status: string }): boolean => status === 'queued' || status === 'running';
  const restore = createRestore({
    shards,
    retentionOf: (org_id) => policies.of(org_id),
    openJobs: () =>
      new Set(
        records
          .all()
          .filter(isOpen)
          .map(({ job_id }) => job_id),
      ),
    now,
  });
  const runner = new LongJobRunner({
    records,
    handlers: { [RESTORE]: restore, ...more(records) },
    workerId,
    log: logger,
    now,
    observe: (job, outcome, seconds) => {
      metrics.jobSeconds.observe({ job, outcome }, seconds);
    },
  });
  runner.start();
  return {
    stop: async () => {
      await runner.stop();
      records.close();
    },
  };
}
