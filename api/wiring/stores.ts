// The state of the control plane as one API process holds it: every bucket that requests are answered from, watched into memory.
import { JobRecords } from '../../ops/exchange/job_records.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { PatternRunner } from '../../ops/platform/pattern_runner.ts';
import { ownBounds } from '../../pipeline/domain/patterns/bounds.ts';
import { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import { AgentStore } from '../control/agents/store.ts';
import { AnalystStore } from '../telemetry/analysts/store.ts';
import { CostSettings } from '../telemetry/costs/settings.ts';
import { DatasetStore } from '../control/datasets/store.ts';
import { EvalStore } from '../control/evals/store.ts';
import { type OpenIncidents, openIncidentRecords } from '../telemetry/incidents/store.ts';

import { JudgeStore } from '../control/judges/store.ts';
import { GrantStore } from '../control/orgs/grant_store.ts';
import { PolicyStore } from '../control/orgs/policy_store.ts';
import { KeyStore, OrgStore } from '../control/orgs/store.ts';
import { PiiPolicyStore } from '../control/privacy/store.ts';
import { PromptStore } from '../control/prompts/store.ts';
import { RetentionStore } from '../control/retention/store.ts';
import { WebhookStore } from '../control/webhooks/store.ts';
import type { WiringParts } from './parts.ts';

export interface Stores {
  orgs: OrgStore;
  keys: KeyStore;
  agents: AgentStore;
  analysts: AnalystStore;
  grants: GrantStore;
  policies: PolicyStore;
  piiPolicies: PiiPolicyStore;
  costs: CostSettings;
  webhooks: WebhookStore;
  judges: JudgeStore;
  prompts: PromptStore;
  evals: EvalStore;
  datasets: DatasetStore;
  incidents: OpenIncidents;
  retention: RetentionStore;
  /** Long work that was asked for. */
  jobs: JobRecords;
  /** Deletions of orgs. */
  deletions: OrgDeletions;
  /** Whether an org is being deleted, or was deleted and has not been made again. */
  isGone: (org_id: string) => boolean;
  close: () => void;
}

/** Resolves when all that the buckets hold now is loaded. */
export async function openStores({ log, now, onProblem }: WiringParts): Promise<Stores> {
  const patterns = new PatternRunner((result) => {
    metrics.patternJobsTotal.inc({ result });
  });
  const deletions = await OrgDeletions.open(log, onProblem);
  const isDeleted = (org_id: string): boolean => deletions.isRunning(org_id);
  const [
    orgs,
    agents,
    policies,
    piiPolicies,
    costs,
    webhooks,
    incidents,
    prompts,
    judges,
    evals,
    datasets,
    retention,
    jobs,
  ] = await Promise.all([
    OrgStore.open(log, onProblem, isDeleted),
    AgentStore.open(log, onProblem),
    PolicyStore.open(log, onProblem),
    PiiPolicyStore.open(log, onProblem, (org_id) => ownBounds(patterns, org_id)),
    CostSettings.open(log, onProblem),
    WebhookStore.open(log, onProblem),
    openIncidentRecords(log, onProblem),
    PromptStore.open(log, onProblem),
    JudgeStore.open(log, onProblem),
    EvalStore.open(log, onProblem),
    DatasetStore.open(log, onProblem),
    RetentionStore.open(log, onProblem),
    JobRecords.open(log, onProblem),
  ]);
  const analysts = await AnalystStore.open(log, onProblem);
  const keys = await KeyStore.open(log, onProblem, {
    memberOf: (org_id, user_id) => orgs.memberOf(org_id, user_id),
    isDeleted,
  });
  const grants = await GrantStore.open({
    log,
    memberOf: (org_id, user_id) => orgs.memberOf(org_id, user_id),
    now,
    onProblem,
  });
  const close = () => {
    for (const store of [
      orgs,
      keys,
      agents,
      analysts,
      policies,
      piiPolicies,
      costs,
      webhooks,
      incidents,
      prompts,
      judges,
      evals,
      datasets,
      retention,
      jobs,
      grants,
      deletions,
    ])
      store.close();
    void patterns.close();
  };
  return {
    orgs,
    keys,
    agents,
    analysts,
    grants,
    policies,
    piiPolicies,
    costs,
    webhooks,
    incidents,
    prompts,
    judges,
    evals,
    datasets,
    retention,
    jobs,
    deletions,
    isGone: (org_id) => isDeleted(org_id) || (deletions.get(org_id) !== null && orgs.get(org_id) === null),
    close,
  };
}
