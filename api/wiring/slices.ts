// The one place where the slices meet: each gets what it needs of the others as functions, and gives its routes.
import { AuditLog, recordSystemMutation } from '../../ops/exchange/audit_log.ts';
import { EraseAsks } from '../../ops/exchange/erase_requests.ts';
import { openUpstream } from '../../ops/platform/llm/upstream.ts';
import { isJudgeQuotaUsedUp } from '../../ops/exchange/judge_quota.ts';
import { queueMail } from '../../ops/exchange/mail_queue.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import { openSealer } from '../../ops/platform/sealing.ts';
import { SCORES_SUBJECT } from '../../schemas/streams.ts';
import { WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import { periodAt } from '../../pipeline/domain/budgets/period.ts';
import { createPriceBook } from '../../pipeline/domain/pricing/pricing.ts';
import { type Mail, userScoreCodec } from '../../schemas/codec.ts';
import { ownerOf } from '../../schemas/records/org.ts';
import type { Admission } from '../admission/admission.ts';
import type { BudgetCheck } from '../admission/budget/check.ts';
import { AgentActivity } from '../control/agents/activity.ts';
import { agentRoutes } from '../control/agents/routes.ts';
import { RegisterTokens } from '../control/agents/tokens.ts';
import { type Analysts, openAnalysts } from '../telemetry/analysts/open.ts';
import { auditRoutes } from '../telemetry/audit/routes.ts';
import { type Budgets, openBudgets } from '../control/budgets/open.ts';
import { costRoutes } from '../telemetry/costs/routes.ts';
import { datasetRoutes } from '../control/datasets/routes.ts';
import { answered, beginRun } from '../control/evals/evals.ts';
import { evalRoutes } from '../control/evals/routes.ts';
import { evalItem } from '../control/evals/schema.ts';
import { OrgSlots } from '../http/org_slots.ts';
import type { Route } from '../http/route.ts';
import { WrittenAnswers } from '../http/written_answers.ts';
import { incidentRoutes } from '../telemetry/incidents/routes.ts';
import type { Publisher } from '../intake/ingest/publisher.ts';
import { createBodyRecorder } from '../intake/ingest/store.ts';
import {
  askForJob,
  beginJob,
  checkJobRoom,
  findJob,
  jobRecordRoutes,
  operatorJobRoutes,
} from '../control/jobs/records.ts';
import { repriceRoutes } from '../control/jobs/reprice.ts';
import { jobRoutes } from '../control/jobs/routes.ts';
import { judgeRoutes } from '../control/judges/routes.ts';
import { bootstrapOrg } from '../control/orgs/bootstrap.ts';
import { orgDeletionRoutes } from '../control/orgs/deletion_routes.ts';
import { grantRoutes } from '../control/orgs/grant_routes.ts';
import { memberRoutes } from '../control/orgs/member_routes.ts';
import { operatorRoutes } from '../control/orgs/operator_routes.ts';
import { policyRoutes } from '../control/orgs/policy_routes.ts';
import { orgRoutes } from '../control/orgs/routes.ts';
import { transferRoutes } from '../control/orgs/transfer_routes.ts';
import { samplingRoutes } from '../telemetry/sampling/routes.ts';
import { promptRoutes } from '../control/prompts/routes.ts';
import { checkPatterns } from '../control/privacy/check.ts';
import { eraseRoutes } from '../control/privacy/erase_routes.ts';
import { privacyRoutes } from '../control/privacy/routes.ts';
import { retentionRoutes } from '../control/retention/routes.ts';
import { scoreRoutes } from '../telemetry/scores/routes.ts';
import { sessionRoutes } from '../control/sign_in/routes.ts';
import { sessionListRoutes } from '../telemetry/sessions/routes.ts';
import { spanRoutes } from '../telemetry/spans/routes.ts';
import { locateTrace } from '../telemetry/traces/locate.ts';
import { REPLAYS_ORG_MAX } from '../telemetry/traces/replay.ts';
import { traceRoutes } from '../telemetry/traces/routes.ts';
import { webhookRoutes } from '../control/webhooks/routes.ts';
import { grantable } from './grantable.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

/** A score that the log does not confirm in this time is refused. */
const SCORE_MS_MAX = 2000;

export interface Slices {
  routes: Route[];
  budgets: Budgets;
  admission: Admission;
  /** What serves the queries of analysts of orgs. */
  analysts: Analysts['handler'];
  /** Begins to read what is followed in ClickHouse; call it when the schema is there. */
  follow: () => void;
  close: () => void;
}

/** Wires the slices, and makes the first org where it is missing. */
export async function openSlices(
  parts: WiringParts,
  stores: Stores,
  ingest: {
    publisher: Publisher;
    partitions: number;
    /** Returns the admission of this process, once budgets are open. */
    admissionWith: (budgets: BudgetCheck) => Admission;
  },
): Promise<Slices> {
  const { env, log, clickhouse, now, show, tracked, onProblem } = parts;
  const { orgs, keys, agents, grants, policies, piiPolicies, costs, prompts } = stores;
  const development = env.SERVICE_ENV === 'development';
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const orgsDeps = {
    orgs,
    keys,
    deletions: stores.deletions,
    grants,
    exists: grantable({ clickhouse, agents, judges: stores.judges, datasets: stores.datasets }),
    queueMail: (mail: Mail) => queueMail(log, mail),
    showTokens: development,
    now,
  };
  const audit = new AuditLog(log, { now, connected: () => tracked.connected, onProblem });
  const record = recordSystemMutation.bind(null, audit);
  const madeKey = await bootstrapOrg(
    { ...orgsDeps, record },
    env.SERVICE_BOOTSTRAP_ORG_ID,
    env.SERVICE_BOOTSTRAP_API_KEY,
  );
  if (madeKey !== null) show(`API key of ${env.SERVICE_BOOTSTRAP_ORG_ID}, shown this once: ${madeKey}`);
  const budgets = await openBudgets({
    log,
    clickhouse,
    now,
    prices: createPriceBook((org_id) => costs.pricesOf(org_id).prices),
    partitions: ingest.partitions,
    ruleOf: (org_id) => policies.get(org_id),
    orgOf: (org_id) => {
      const org = orgs.get(org_id);
      return org === null ? null : { ...org, owner: ownerOf(org) };
    },
    sealer,
    development,
    onProblem,
  });
  const admission = ingest.admissionWith(budgets.check);
  const activity = new AgentActivity({ clickhouse, agents, onProblem });
  const agentsDeps = {
    agents,
    tokens: new RegisterTokens(await log.bucket('register_tokens'), now),
    lastSeen: (org_id: string, agent_id: string) => activity.lastSeen(org_id, agent_id),
    now,
  };
  const costDeps = {
    clickhouse,
    settings: costs,
    agentMetadata: (org_id: string, agent_id: string) => agents.get(org_id, agent_id)?.metadata ?? null,
    policyOf: (org_id: string) => policies.get(org_id),
    now,
  };
  const jobsDeps = { nc: log.nc, connected: () => tracked.connected };
  const deadLetters = await WebhookDeadLetters.open(log);
  const eraseAsks = await EraseAsks.open(log, sealer);
  const written = new WrittenAnswers();
  const tracesDeps = {
    clickhouse,
    written,
    exporterOf: (org_id: string) => piiPolicies.exporter(org_id),
    policyOf: (org_id: string) => policies.get(org_id),
    promptOf: (org_id: string, name: string) => prompts.newest(org_id, name),
    upstream: openUpstream({
      base_url: env.SERVICE_LLM_BASE_URL,
      api_key: env.SERVICE_LLM_API_KEY,
      observe: (result, seconds) => {
        metrics.llmCallsTotal.inc({ result });
        metrics.llmCallSeconds.observe(seconds);
      },
    }),
    replaySlots: new OrgSlots(REPLAYS_ORG_MAX),
    recorder: createBodyRecorder({ admission, publisher: ingest.publisher, partitions: ingest.partitions, now }),
    now,
  };
  const evalsDeps = {
    evals: stores.evals,
    clickhouse,
    judgeOf: (org_id: string, judge_id: string) => stores.judges.get(org_id, judge_id),
    quotaUsedUpUntil: async (org_id: string) => {
      const policy = policies.get(org_id);
      const { start, end } = periodAt(policy, now());
      return (await isJudgeQuotaUsedUp(log, { org_id, limit: policy.judge_quota_calls, period_start: start }))
        ? end
        : null;
    },
    hasUpstream: env.SERVICE_LLM_BASE_URL !== undefined,
    written,
    now,
    onProblem,
  };
  const datasetsDeps = {
    datasets: stores.datasets,
    promptOf: (org_id: string, ref: string) => prompts.resolve(org_id, ref),
    beginRun: beginRun.bind(null, evalsDeps),
    runningEvals: {
      known: (org_id: string) => stores.evals.list(org_id).filter(({ status }) => status === 'running'),
      stored: (org_id: string) => stores.evals.runningNow(org_id),
    },
    removeGrants: (org_id: string, dataset_id: string) => grants.removeOn(org_id, { type: 'dataset', id: dataset_id }),
    now,
  };
  const analysts = openAnalysts({
    analysts: stores.analysts,
    clickhouse,
    cluster: env.SERVICE_CLICKHOUSE_CLUSTER,
    hasOrg: (org_id) => orgs.get(org_id) !== null,
    now,
    onProblem,
  });
  return {
    budgets,
    admission,
    analysts: analysts.handler,
    routes: [
      analysts.routes,
      traceRoutes(tracesDeps),
      promptRoutes({ store: prompts, runningEvals: datasetsDeps.runningEvals.stored, now }),
      sessionListRoutes({ clickhouse }),
      scoreRoutes({
        clickhouse,
        locate: (org_id, trace_id, signal) => locateTrace(clickhouse, org_id, trace_id, signal),
        queue: (score) =>
          publishRecord(log, SCORES_SUBJECT, userScoreCodec, score, { msgID: score.score_id, timeoutMs: SCORE_MS_MAX }),
        now,
      }),
      spanRoutes({ clickhouse }),
      samplingRoutes({ settings: env, clickhouse, now }),
      costRoutes(costDeps),
      budgets.routes,
      judgeRoutes({ judges: stores.judges, now }),
      agentRoutes(agentsDeps),
      evalRoutes(evalsDeps),
      datasetRoutes(datasetsDeps, { item: evalItem, answered: answered.bind(null, evalsDeps) }),
      incidentRoutes({ clickhouse, incidents: stores.incidents, now, onProblem }),
      orgRoutes(orgsDeps),
      memberRoutes(orgsDeps),
      transferRoutes(orgsDeps),
      grantRoutes(orgsDeps),
      policyRoutes(policies, {
        of: (org_id) => piiPolicies.get(org_id),
        check: checkPatterns,
        change: (org_id, change) => piiPolicies.change(org_id, change, sealer),
      }),
      privacyRoutes({ policies: piiPolicies, sealer }),
      eraseRoutes({
        checkRoom: checkJobRoom.bind(null, { records: stores.jobs }),
        keep: (org_id, value) => eraseAsks.create(org_id, value),
        ask: askForJob.bind(null, { records: stores.jobs, now }),
      }),
      auditRoutes({ clickhouse, now }),
      webhookRoutes({ store: stores.webhooks, deadLetters, sealer, log, clickhouse, development, now }),
      sessionRoutes({ orgsOf: (user_id) => orgs.orgsOf(user_id), secure: !development, now }),
      operatorRoutes(orgsDeps),
      orgDeletionRoutes({
        orgs,
        deletions: stores.deletions,
        bootstrapOrgId: env.SERVICE_BOOTSTRAP_ORG_ID,
        begin: beginJob.bind(null, { records: stores.jobs, now }),
        jobOf: findJob.bind(null, { records: stores.jobs }),
        now,
      }),
      jobRoutes(jobsDeps),
      retentionRoutes({ policies: stores.retention, ask: askForJob.bind(null, { records: stores.jobs, now }) }),
      jobRecordRoutes({ records: stores.jobs, now }),
      operatorJobRoutes({ records: stores.jobs, now }),
      repriceRoutes({ ...jobsDeps, hasOrg: (org_id) => orgs.get(org_id) !== null }),
    ].flat(),
    follow: () => {
      activity.start();
    },
    close: () => {
      activity.close();
      analysts.close();
      budgets.close();
    },
  };
}
