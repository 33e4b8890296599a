// Wiring of what a worker does beside the data plane, once the store is up: incidents, LLM judging,
// evals, scheduled jobs and long jobs.
import * as metrics from '../../ops/platform/metrics.ts';
import { LangfuseFolder } from '../langfuse/folder.ts';
import { type IncidentsPart, openIncidents } from '../incidents/open.ts';
import { type StartedJobs, startJobs } from '../jobs/start.ts';
import type { RetentionPolicies } from '../settings/retention_policies.ts';
import { type ColdParts, startLongJobs } from './cold.ts';
import type { DataPlane } from './data_plane.ts';
import { openErasure } from './erasure.ts';
import { startEvals } from './evals.ts';
import { answerPreviews, startJudging } from './judging.ts';
import { openOrgDeletion } from './org_deletion.ts';
import { countPublished } from './parts.ts';
import type { Platform } from './platform.ts';
import type { Settings } from './settings.ts';
import type { StoreUp } from './store.ts';

export interface ServiceParts {
  platform: Platform;
  settings: Settings;
  retention: RetentionPolicies;
  cold: ColdParts;
  storeUp: StoreUp;
  dataPlane: DataPlane;
}

export interface Services {
  /** Seconds by which scheduled jobs are overdue, by job. */
  overdue: () => Map<string, number>;
  /** Gives work under way some seconds to finish; other workers take over the rest. */
  stop: () => Promise<void>;
  /** Stops answering requests of other workers. Call it after the data plane has stopped. */
  close: () => void;
}

export async function startServices(parts: ServiceParts): Promise<Services> {
  const { platform, settings, dataPlane } = parts;
  const { policies, prices, piiPolicies, judgeRecords } = settings;
  const { deletions, partitions, patterns } = platform;
  const isLeader = (): boolean => dataPlane.ownership.isLeader;
  const incidents = await startIncidents(platform, isLeader);
  const judging = startJudging(platform, { policies, piiPolicies, deletions, judgeRecords, partitions });
  const evals = await startEvals(platform, {
    policies,
    prices,
    piiPolicies,
    models: judging.models,
    patterns,
    isLeader,
  });
  const stopPreviews = answerPreviews(platform, { models: judging.models, prices, patterns });
  const folder = new LangfuseFolder({
    log: platform.log,
    partitions,
    isLeader,
    openMs: platform.env.SERVICE_LANGFUSE_OPEN_MS,
    now: () => Date.now(),
    onProblem: platform.onProblem,
  });
  folder.start();
  const jobs = await startScheduledJobs(parts, incidents);
  const longJobs = await startAskedJobs(parts);
  return {
    overdue: () => jobs.overdue(),
    stop: async () => {
      stopPreviews();
      await Promise.all([folder.stop(), jobs.stop(), longJobs.stop(), incidents.stop(), evals.stop(), judging.stop()]);
    },
    close: longJobs.close,
  };
}

async function startIncidents({ log, logger, clickhouse }: Platform, isLeader: () => boolean): Promise<IncidentsPart> {
  const incidents = await openIncidents({
    log,
    logger,
    clickhouse,
    now: () => Date.now(),
    isLeader,
    observe: (queue, result, count) => {
      metrics.queueMessagesTotal.inc({ queue, result }, count);
    },
    onPublished: countPublished,
  });
  incidents.start();
  return incidents;
}

function startScheduledJobs(
  { platform, dataPlane, cold, storeUp }: ServiceParts,
  incidents: IncidentsPart,
): Promise<StartedJobs> {
  const { log, logger, store, workerId, partitions } = platform;
  return startJobs({
    budgets: dataPlane.budgets.keeper,
    incidents,
    retention: cold.retention,
    log,
    store,
    workerId,
    partitions,
    sync: storeUp.sync,
    logger,
    observe: (job, outcome, seconds) => {
      metrics.jobSeconds.observe({ job, outcome }, seconds);
    },
    onPublished: countPublished,
  });
}

/** Starts the runner of long jobs: restores, erasures and deletions of organizations. */
async function startAskedJobs({
  platform,
  dataPlane,
  cold,
  storeUp,
  retention,
}: ServiceParts): Promise<{ stop: () => Promise<void>; close: () => void }> {
  const { worker } = dataPlane;
  const erasure = await openErasure({ ...platform, ...storeUp, cold: cold.shards, worker });
  const orgDeletion = await openOrgDeletion({ ...platform, ...storeUp, objects: cold.objects });
  const longJobs = await startLongJobs(platform, cold, retention, (records) => ({
    ...erasure.handlers(records),
    ...orgDeletion.handlers(records),
  }));
  return {
    stop: () => longJobs.stop(),
    close: () => {
      erasure.stop();
      orgDeletion.stop();
    },
  };
}
