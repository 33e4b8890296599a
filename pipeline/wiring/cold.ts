// Wiring of cold storage: the object store, what the retention job needs, and the runner of long
// jobs.
import path from 'node:path';
import { JobRecords } from '../../ops/exchange/job_records.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { ObjectStore } from '../../ops/platform/object_store/object_store.ts';
import { openObjectStore } from '../../ops/platform/object_store/open.ts';
import { RESTORE } from '../../schemas/records/job_record.ts';
import { ColdTables } from '../../sql/stores/cold.ts';
import { RetentionStore } from '../../sql/stores/retention.ts';
import { ColdStorage } from '../cold/cold_storage.ts';
import { createRestore } from '../cold/restore.ts';
import { type LongJobHandler, LongJobRunner } from '../jobs/long_jobs.ts';
import { announceDeletedTraces } from '../retention/deleted_traces.ts';
import { type RetentionPolicies, readRetentionPolicies } from '../settings/retention_policies.ts';
import type { RetentionDeps } from '../retention/retention.ts';
import type { WorkerParts } from './parts.ts';

export interface ColdParts {
  objects: ObjectStore;
  tables: ColdTables;
  cold: ColdStorage;
  /** Dependencies of the retention job. */
  retention: RetentionDeps;
}

/** Opens cold storage. It sends no request to the object store yet. */
export async function openCold({ env, log, clickhouse }: WorkerParts): Promise<ColdParts> {
  const dataDir = path.resolve(env.SERVICE_DATA_DIR);
  const { AWS_ACCESS_KEY_ID: accessKeyId, AWS_SECRET_ACCESS_KEY: secretAccessKey } = env;
  const objects = await openObjectStore({
    url: env.SERVICE_OBJECT_STORE ?? `file://${encodeURI(path.join(dataDir, 'cold'))}`,
    credentials:
      accessKeyId === undefined || secretAccessKey === undefined ? undefined : { accessKeyId, secretAccessKey },
  });
  const tables = new ColdTables(clickhouse);
  const cold = new ColdStorage({ store: objects, tables, tempDir: path.join(dataDir, 'tmp'), now: () => Date.now() });
  const retention = {
    store: new RetentionStore(clickhouse),
    tables,
    cold,
    policies: () => readRetentionPolicies(log),
    tracesDeleted: () => announceDeletedTraces(log.nc),
  };
  return { objects, tables, cold, retention };
}

/**
 * Starts the runner of long jobs: restores, and the kinds that `more` handles.
 *
 * @param more returns the handlers of other kinds
 */
export async function startLongJobs(
  { log, logger, workerId, onProblem }: WorkerParts,
  { cold, tables }: ColdParts,
  policies: RetentionPolicies,
  more: (records: JobRecords) => Readonly<Record<string, LongJobHandler>>,
): Promise<{ stop: () => Promise<void> }> {
  const records = await JobRecords.open(log, onProblem);
  const now = (): number => Date.now();
  const isOpen = ({ status }: { status: string }): boolean => status === 'queued' || status === 'running';
  const restore = createRestore({
    cold,
    tables,
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
