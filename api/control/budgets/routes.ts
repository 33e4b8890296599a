// Routes of budgets: what an org has used, its limits, and its agents' own.
import { z } from 'zod';
import { RESOURCES } from '../../../schemas/records/budget.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type BudgetsDeps, putAgentBudget, putBudget, readAgentBudgets, readBudget } from './budgets.ts';
import { agentBudget, agentBudgetBody, budget, putBudgetBody } from './schema.ts';

const TAG = 'Budgets';

const RULES =
  'A soft limit warns, a hard one refuses ingest: 429 with Retry-After counting to the end of the period, 402 where the org has an overage budget and has spent it.';

export function budgetRoutes(deps: BudgetsDeps): Route[] {
  return [getBudgetRoute(deps), putBudgetRoute(deps), listAgentBudgetsRoute(deps), putAgentBudgetRoute(deps)];
}

function getBudgetRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/budgets',
    operation_id: 'getBudget',
    summary: 'What the org has used in its period, and its limits',
    tag: TAG,
    permission: 'costs:read',
    response: budget,
    handler: async ({ org_id }) => ({ data: await readBudget(deps, org_id) }),
  });
}

function putBudgetRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/budget',
    operation_id: 'putBudget',
    summary: 'Set limits of the org',
    description: `${RULES} What is left out stays as it is; null takes a limit away.`,
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'budget.update', target: 'budget', param: 'org_id' },
    params: orgParams,
    body: putBudgetBody,
    example: {
      tokens: { soft_limit: 8_000_000, hard_limit: 10_000_000 },
      storage_mb: { soft_limit: null, hard_limit: 5000 },
    },
    response: budget,
    handler: async ({ org_id, body, audit }) => {
      const { before, after, budget: data } = await putBudget(deps, org_id, body);
      audit.changes(fromTo(before, after, RESOURCES));
      return { data };
    },
  });
}

function listAgentBudgetsRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/budget/agents',
    operation_id: 'listAgentBudgets',
    summary: 'Agents with limits of their own, and what they have used',
    tag: TAG,
    permission: 'costs:read',
    params: orgParams,
    response: z.array(agentBudget),
    handler: async ({ org_id }) => ({ data: await readAgentBudgets(deps, org_id) }),
  });
}

function putAgentBudgetRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/budget/agents',
    operation_id: 'putAgentBudget',
    summary: "Set an agent's own limits on tokens",
    description: `They take the place of the org's for events that carry the agent_id; its use still counts in the org's total. ${RULES}`,
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'budget.agent_update', target: 'budget', sets: true },
    params: orgParams,
    body: agentBudgetBody,
    example: { agent_id: 'agent_support', tokens: { soft_limit: 800_000, hard_limit: 1_000_000 } },
    status: 201,
    response: agentBudget,
    handler: async ({ org_id, body, audit }) => {
      const { before, after, budget: data } = await putAgentBudget(deps, org_id, body);
      audit.target(body.agent_id);
      audit.changes(fromTo(before, after, ['tokens']));
      return { data };
    },
  });
}
