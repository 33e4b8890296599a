// The one place where the slices meet: each gets what it needs of the others as functions, and gives its routes.
import { queueMail } from '../../ops/mail_queue.ts';
import { openSealer } from '../../ops/sealing.ts';
import { WebhookDeadLetters } from '../../ops/webhook_queue.ts';
import { createPriceBook } from '../../pipeline/domain/pricing.ts';
import type { Mail } from '../../schemas/codec.ts';
import { ownerOf } from '../../schemas/records/org.ts';
import { AgentActivity } from '../agents/activity.ts';
import { agentRoutes } from '../agents/routes.ts';
import { RegisterTokens } from '../agents/tokens.ts';
import { auditRoutes } from '../audit/routes.ts';
import { type Budgets, openBudgets } from '../budgets/open.ts';
import { costRoutes } from '../costs/routes.ts';
import type { Route } from '../http/route.ts';
import { incidentRoutes } from '../incidents/routes.ts';
import type { Publisher } from '../ingest/publisher.ts';
import { repriceRoutes } from '../jobs/reprice.ts';
import { jobRoutes } from '../jobs/routes.ts';
import { bootstrapOrg } from '../orgs/bootstrap.ts';
import { grantRoutes } from '../orgs/grant_routes.ts';
import { memberRoutes } from '../orgs/member_routes.ts';
import { operatorRoutes } from '../orgs/operator_routes.ts';
import { policyRoutes } from '../orgs/policy_routes.ts';
import { orgRoutes } from '../orgs/routes.ts';
import { transferRoutes } from '../orgs/transfer_routes.ts';
import { samplingRoutes } from '../sampling/routes.ts';
import { sessionRoutes } from '../session/routes.ts';
import { spanRoutes } from '../spans/routes.ts';
import { traceRoutes } from '../traces/routes.ts';
import { webhookRoutes } from '../webhooks/routes.ts';
import { grantable } from './grantable.ts';
import type { WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

export interface Slices {
  routes: Route[];
  budgets: Budgets;
  /** Begins to read what is followed in ClickHouse; call it when the schema is there. */
  follow: () => void;
  close: () => void;
}

/** Wires the slices, and makes the first org where it is missing. */
export async function openSlices(
  parts: WiringParts,
  stores: Stores,
  _ingest: { publisher: Publisher; partitions: number },
): Promise<Slices> {
  const { env, log, clickhouse, now, show, tracked, onProblem } = parts;
  const { orgs, keys, agents, grants, policies, costs } = stores;
  const development = env.SERVICE_ENV === 'development';
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const orgsDeps = {
    orgs,
    keys,
    grants,
    exists: grantable({ clickhouse, agents }),
    queueMail: (mail: Mail) => queueMail(log, mail),
    showTokens: development,
    now,
  };
  const madeKey = await bootstrapOrg(orgsDeps, env.SERVICE_BOOTSTRAP_ORG_ID, env.SERVICE_BOOTSTRAP_API_KEY);
  if (madeKey !== null) show(`API key of ${env.SERVICE_BOOTSTRAP_ORG_ID}, shown this once: ${madeKey}`);
  const budgets = await openBudgets({
    log,
    clickhouse,
    now,
    prices: createPriceBook((org_id) => costs.pricesOf(org_id).prices),
    ruleOf: (org_id) => policies.get(org_id),
    orgOf: (org_id) => {
      const org = orgs.get(org_id);
      return org === null ? null : { ...org, owner: ownerOf(org) };
    },
    sealer,
    development,
    onProblem,
  });
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
  return {
    budgets,
    routes: [
      traceRoutes({ clickhouse, now }),
      spanRoutes({ clickhouse }),
      samplingRoutes({ settings: env, clickhouse, now }),
      costRoutes(costDeps),
      budgets.routes,
      agentRoutes(agentsDeps),
      incidentRoutes({ clickhouse, incidents: stores.incidents, now, onProblem }),
      orgRoutes(orgsDeps),
      memberRoutes(orgsDeps),
      transferRoutes(orgsDeps),
      grantRoutes(orgsDeps),
      policyRoutes(policies),
      auditRoutes({ clickhouse, now }),
      webhookRoutes({ store: stores.webhooks, deadLetters, sealer, log, clickhouse, development, now }),
      sessionRoutes({ orgsOf: (user_id) => orgs.orgsOf(user_id), secure: !development, now }),
      operatorRoutes(orgsDeps),
      jobRoutes(jobsDeps),
      repriceRoutes({ ...jobsDeps, hasOrg: (org_id) => orgs.get(org_id) !== null }),
    ].flat(),
    follow: () => {
      activity.start();
    },
    close: () => {
      activity.close();
      budgets.close();
    },
  };
}
