// All scheduled jobs, as data, and their dependencies.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { AuditLog } from '../../ops/exchange/audit_log.ts';
import { recordSystemMutation } from '../../ops/exchange/audit_log.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { readRecord, watch } from '../../ops/platform/nats/watch.ts';
import { lastSeenOf } from '../../sql/stores/agent_activity.ts';
import type { Store } from '../../sql/client/shards.ts';
import { JOB_SCHEDULES } from '../../schemas/job_schedules.ts';
import { type AnomalyConfig, DEFAULT_ANOMALY_CONFIG } from '../../schemas/records/cost_config.ts';
import { orgKey } from '../../schemas/records/org.ts';
import { DEFAULT_POLICY, type Policy } from '../../schemas/records/policy.ts';
import { NO_PRICES } from '../../schemas/records/prices.ts';
import { REPRICE } from '../../schemas/records/repricing.ts';
import { RepricingStore } from '../../sql/stores/repricing.ts';
import { AGENT_DRIFT, type AgentRegistry, createAgentDrift } from './agent_drift.ts';
import { ANOMALIES, createAnomalies } from './anomalies.ts';
import { budgetJobs, type Budgets } from './budgets.ts';
import { incidentJobs, type Incidents } from './incidents.ts';
import { monitorJob } from './monitors.ts';
import { createForecast, FORECAST } from './forecast.ts';
import type { OrgPrice } from '../domain/pricing/pricing.ts';
import { RETENTION } from '../retention/retention.ts';
import { createRetentionOfShards, type ShardRetention } from '../retention/retention_of_shards.ts';
import { CorrectionLog } from './correction_log.ts';
import type { Job } from './job.ts';
import { createReprice } from './reprice.ts';
import { type JobEvent, publishJobEvent } from './job_event.ts';

const MINUTE_MS = 60_000;

export interface JobsDeps {
  log: Log;
  store: Store;
  audit: AuditLog;
  budgets: Budgets;
  incidents: Incidents;
  retention: readonly ShardRetention[];
  /** Partitions of the ingest log. */
  partitions: number;
  /** Resolves when everything written before the call would survive power loss. */
  sync: () => Promise<void>;
  /** Called when a platform event was published. */
  onPublished: (event: string) => void;
  onProblem: ReportProblem;
}

/** Returns every scheduled job of the service. */
export function createJobs(deps: JobsDeps): Job[] {
  const { log, store, audit, budgets, incidents, retention, partitions, sync, onPublished, onProblem } = deps;
  const { clickhouse } = store;
  const publish = async (event: JobEvent): Promise<void> => {
    await publishJobEvent(log, event);
    onPublished(event.event);
  };
  return [
    {
      name: AGENT_DRIFT,
      cron: JOB_SCHEDULES['agent-drift'],
      timeout_ms: 10 * MINUTE_MS,
      run: createAgentDrift({
        openAgents: () => openAgents(log, onProblem),
        lastSeenOf: (agents, signal) => lastSeenOf(clickhouse, agents, { signal }),
        record: (mutation, mutate) => recordSystemMutation(audit, mutation, mutate),
      }),
    },
    ...budgetJobs(budgets),
    ...incidentJobs(incidents),
    monitorJob({ log, clickhouse, onPublished, onProblem }),
    {
      // The scheduled run finishes interrupted repricings.
      name: REPRICE,
      cron: JOB_SCHEDULES.reprice,
      timeout_ms: 6 * 60 * MINUTE_MS,
      run: createReprice({
        shards: store.shards.map((shard) => ({
          clickhouse: shard.clickhouse,
          store: new RepricingStore(shard.clickhouse),
        })),
        log: new CorrectionLog(log, partitions),
        kv: () => log.bucket('repricings'),
        pricesOf: (org_id) => pricesOf(log, org_id),
        sync,
      }),
    },
    {
      name: RETENTION,
      cron: JOB_SCHEDULES.retention,
      timeout_ms: 12 * 60 * MINUTE_MS,
      run: createRetentionOfShards(retention),
    },
    {
      name: ANOMALIES,
      cron: JOB_SCHEDULES.anomalies,
      timeout_ms: 30 * MINUTE_MS,
      run: createAnomalies({
        clickhouse,
        configOf: (org_id) => anomalyConfigOf(log, org_id),
        publish,
      }),
    },
    {
      name: FORECAST,
      cron: JOB_SCHEDULES.forecast,
      timeout_ms: 30 * MINUTE_MS,
      run: createForecast({
        clickhouse,
        openBudgets: () => watch(log, 'budgets', onProblem),
        openStates: () => watch(log, 'budget_states', onProblem),
        ruleOf: (org_id) => policyOf(log, org_id),
        publish,
      }),
    },
  ];
}

/**
 * Opens the registry of all agents for the length of a run; the worker needs it at no other time.
 */
function openAgents(log: Log, onProblem: ReportProblem): Promise<AgentRegistry> {
  return watch(log, 'agents', onProblem);
}

/**
 * The configuration is read from the bucket itself, because a job needs no watch between two runs.
 */
async function anomalyConfigOf(log: Log, org_id: string): Promise<AnomalyConfig> {
  return (await readRecord(log, 'cost_configs', orgKey(org_id))) ?? DEFAULT_ANOMALY_CONFIG;
}

async function pricesOf(log: Log, org_id: string): Promise<readonly OrgPrice[]> {
  return ((await readRecord(log, 'prices', orgKey(org_id))) ?? NO_PRICES).prices;
}

async function policyOf(log: Log, org_id: string): Promise<Policy> {
  return (await readRecord(log, 'policies', orgKey(org_id))) ?? DEFAULT_POLICY;
}
