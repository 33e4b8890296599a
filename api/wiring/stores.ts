// Opens the stores of the control plane in one API process: every bucket that requests are answered
// from, watched into memory.
import { JobRecords } from '../../ops/exchange/job_records.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { PatternRunner } from '../../ops/platform/pattern_runner.ts';
import { ownBounds } from '../../pipeline/domain/patterns/bounds.ts';
import { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import { AgentStore } from '../control/agents/store.ts';
import { AnalystStore } from '../telemetry/analysts/store.ts';
import { AnnotationStore } from '../control/annotation/store.ts';
import { CostSettings } from '../telemetry/costs/settings.ts';
import { DatasetStore } from '../control/datasets/store.ts';
import { EvalStore } from '../control/evals/store.ts';
import { type OpenIncidents, openIncidentRecords } from '../telemetry/incidents/store.ts';

import { JudgeStore } from '../control/judges/store.ts';
import { MonitorStore } from '../control/monitors/store.ts';
import { GrantStore } from '../control/orgs/grant_store.ts';
import { PolicyStore } from '../control/orgs/policy_store.ts';
import { KeyStore, OrgStore } from '../control/orgs/store.ts';
import { PiiPolicyStore } from '../control/privacy/store.ts';
import { PromptStore } from '../control/prompts/store.ts';
import { RetentionStore } from '../control/retention/store.ts';
import { ViewStore } from '../control/views/store.ts';
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
  views: ViewStore;
  monitors: MonitorStore;
  annotations: AnnotationStore;
  /** Long jobs. */
  jobs: JobRecords;
  /** Deletions of organizations. */
  deletions: OrgDeletions;
  /**
   * Returns true while the organization is being deleted, and after its deletion until it is
   * created again.
   */
  isGone: (org_id: string) => boolean;
  close: () => void;
}

/** Opens every store. Resolves once all present records are loaded. */
export async function openStores({ log, now, onProblem }: WiringParts): Promise<Stores> {
  const patterns = new PatternRunner((result) => {
    metrics.patternJobsTotal.inc({ result });
  });
  const deletions = await OrgDeletions.open(log, onProblem);
  const isDeleted = (org_id: string): boolean => deletions.isRunning(org_id);
  const orgs = await OrgStore.open(log, onProblem, isDeleted);
  const memberOf = (org_id: string, user_id: string) => orgs.memberOf(org_id, user_id);
  const others = await allOpen({
    keys: KeyStore.open(log, onProblem, { memberOf, isDeleted, now }),
    grants: GrantStore.open({ log, memberOf, now, onProblem }),
    agents: AgentStore.open(log, onProblem),
    analysts: AnalystStore.open(log, onProblem),
    policies: PolicyStore.open(log, onProblem),
    piiPolicies: PiiPolicyStore.open(log, onProblem, (org_id) => ownBounds(patterns, org_id)),
    costs: CostSettings.open(log, onProblem),
    webhooks: WebhookStore.open(log, onProblem),
    incidents: openIncidentRecords(log, onProblem),
    prompts: PromptStore.open(log, onProblem),
    judges: JudgeStore.open(log, onProblem),
    evals: EvalStore.open(log, onProblem),
    datasets: DatasetStore.open(log, onProblem),
    retention: RetentionStore.open(log, onProblem),
    views: ViewStore.open(log, onProblem),
    monitors: MonitorStore.open(log, onProblem),
    annotations: AnnotationStore.open(log, onProblem),
    jobs: JobRecords.open(log, onProblem),
  });
  const stores = { deletions, orgs, ...others };
  return {
    ...stores,
    isGone: (org_id) => isDeleted(org_id) || (deletions.get(org_id) !== null && orgs.get(org_id) === null),
    close: () => {
      for (const store of Object.values(stores)) store.close();
      void patterns.close();
    },
  };
}

/** Resolves with all stores by name once each of them is open. */
async function allOpen<T extends Record<string, unknown>>(opening: { [K in keyof T]: Promise<T[K]> }): Promise<T> {
  const entries = Object.entries(opening).map(async ([name, store]) => [name, await store] as const);
  return Object.fromEntries(await Promise.all(entries)) as T;
}
