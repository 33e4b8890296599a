// Starts the scheduled jobs of one worker.
import { AuditLog } from '../../ops/exchange/audit_log.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { trackConnected } from '../../ops/platform/nats/connect.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { Store } from '../../sql/client/shards.ts';
import type { Budgets } from './budgets.ts';
import type { ShardRetention } from '../retention/retention_of_shards.ts';
import type { Incidents } from './incidents.ts';
import { createJobs } from './jobs.ts';
import { JobLeases } from './lease.ts';
import { JobRunner, type RunnerOptions } from './runner.ts';

export interface JobsParts {
  log: Log;
  store: Store;
  budgets: Budgets;
  incidents: Incidents;
  retention: readonly ShardRetention[];
  workerId: string;
  /** Partitions of the ingest log. */
  partitions: number;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  logger: Logger;
  observe: RunnerOptions['observe'];
  /** Called when a platform event was published. */
  onPublished: (event: string) => void;
}

export interface StartedJobs {
  /** Returns, by job, how many seconds its newest slot has been unfinished; 0 when it is done. */
  overdue: () => Map<string, number>;
  stop: () => Promise<void>;
}

/**
 * Starts scheduling and answering calls. `stop` resolves when running jobs have ended and their
 * outcomes are written.
 */
export async function startJobs({
  log,
  store,
  budgets,
  incidents,
  retention,
  workerId,
  partitions,
  sync,
  logger,
  observe,
  onPublished,
}: JobsParts): Promise<StartedJobs> {
  const onProblem = (problem: string, cause: unknown): void => {
    logger.warn({ err: cause }, problem);
  };
  const tracked = trackConnected(log.nc);
  const audit = new AuditLog(log, { now: () => Date.now(), connected: () => tracked.connected, onProblem });
  const leases = await JobLeases.open({ log, workerId, onProblem });
  const jobs = createJobs({
    log,
    store,
    audit,
    budgets,
    incidents,
    retention,
    partitions,
    sync,
    onPublished,
    onProblem,
  });
  const runner = new JobRunner({ nc: log.nc, leases, jobs, log: logger, observe });
  await runner.start();
  return {
    overdue: () => runner.overdue(Date.now()),
    stop: async () => {
      await runner.stop();
      await audit.flush();
      leases.close();
    },
  };
}
