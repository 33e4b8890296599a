// Routes of budgets: what an org has used, its limits, and its agents' own.
import { z } from 'zod';
import { RESOURCES } from '../../../schemas/records/budget.ts';
import { fromTo } from '../../http/changes.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type BudgetsDeps, putAgentBudget, putBudget, readAgentBudgets, readBudget } from './budgets.ts';
import { agentBudget, agentBudgetBody, budget, orgParams, putBudgetBody } from './schema.ts';

const RULES =
  'A soft limit warns, a hard one refuses ingest: 429 with Retry-After counting to the end of the period, 402 where the org has an overage budget and has spent it.';

export function budgetRoutes(deps: BudgetsDeps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: '/v1/budgets',
      operation_id: 'getBudget',
      summary: 'What the org has used in its period, and its limits',
      tag: 'Budgets',
      permission: 'costs:read',
      response: budget,
      handler: async (ctx) => ({ data: await readBudget(deps, ctx.org_id) }),
    }),
    defineRoute({
      method: 'put',
      path: '/orgs/:org_id/budget',
      operation_id: 'putBudget',
      summary: 'Set limits of the org',
      description: `${RULES} What is left out stays as it is; null takes a limit away.`,
      tag: 'Budgets',
      permission: 'budgets:write',
      params: orgParams,
      body: putBudgetBody,
      example: {
        tokens: { soft_limit: 8_000_000, hard_limit: 10_000_000 },
        storage_mb: { soft_limit: null, hard_limit: 5000 },
      },
      response: budget,
      audit: { action: 'budget.update', target: 'budget', param: 'org_id' },
      handler: async (ctx) => {
        const { before, after, budget: data } = await putBudget(deps, ctx.org_id, ctx.body);
        ctx.audit.changes(fromTo(before, after, RESOURCES));
        return { data };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/budget/agents',
      operation_id: 'listAgentBudgets',
      summary: 'Agents with limits of their own, and what they have used',
      tag: 'Budgets',
      permission: 'costs:read',
      params: orgParams,
      response: z.array(agentBudget),
      handler: async (ctx) => ({ data: await readAgentBudgets(deps, ctx.org_id) }),
    }),
    defineRoute({
      method: 'post',
      path: '/orgs/:org_id/budget/agents',
      operation_id: 'putAgentBudget',
      summary: "Set an agent's own limits on tokens",
      description: `They take the place of the org's for events that carry the agent_id; its use still counts in the org's total. ${RULES}`,
      tag: 'Budgets',
      permission: 'budgets:write',
      status: 201,
      params: orgParams,
      body: agentBudgetBody,
      example: { agent_id: 'agent_support', tokens: { soft_limit: 800_000, hard_limit: 1_000_000 } },
      response: agentBudget,
      audit: { action: 'budget.agent_update', target: 'budget', sets: true },
      handler: async (ctx) => {
        const { before, after, budget: data } = await putAgentBudget(deps, ctx.org_id, ctx.body);
        ctx.audit.target(ctx.body.agent_id);
        ctx.audit.changes(fromTo(before, after, ['tokens']));
        return { data };
      },
    }),
  ];
}
