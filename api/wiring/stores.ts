// The state of the control plane as one API process holds it: every bucket that requests are answered from, watched into memory.
import { AgentStore } from '../agents/store.ts';
import { CostSettings } from '../costs/settings.ts';
import { type OpenIncidents, openIncidentRecords } from '../incidents/store.ts';
import { GrantStore } from '../orgs/grant_store.ts';
import { PolicyStore } from '../orgs/policy_store.ts';
import { KeyStore, OrgStore } from '../orgs/store.ts';
import { WebhookStore } from '../webhooks/store.ts';
import type { WiringParts } from './parts.ts';

export interface Stores {
  orgs: OrgStore;
  keys: KeyStore;
  agents: AgentStore;
  grants: GrantStore;
  policies: PolicyStore;
  costs: CostSettings;
  webhooks: WebhookStore;
  incidents: OpenIncidents;
  close: () => void;
}

/** Resolves when all that the buckets hold now is loaded. */
export async function openStores({ log, now, onProblem }: WiringParts): Promise<Stores> {
  const [orgs, keys, agents, policies, costs, webhooks, incidents] = await Promise.all([
    OrgStore.open(log, onProblem),
    KeyStore.open(log, onProblem),
    AgentStore.open(log, onProblem),
    PolicyStore.open(log, onProblem),
    CostSettings.open(log, onProblem),
    WebhookStore.open(log, onProblem),
    openIncidentRecords(log, onProblem),
  ]);
  const grants = await GrantStore.open({ log, memberOf: (org_id, user_id) => orgs.memberOf(org_id, user_id), now, onProblem });
  const close = () => {
    for (const store of [orgs, keys, agents, policies, costs, webhooks, incidents, grants]) store.close();
  };
  return { orgs, keys, agents, grants, policies, costs, webhooks, incidents, close };
}
