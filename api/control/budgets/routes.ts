// Routes of budgets: the use and limits of an organization, and the limits of its agents.
import { z } from 'zod';
import { AGENT_RESOURCES, RESOURCES } from '../../../schemas/records/budget.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type BudgetsDeps, putAgentBudget, putBudget, readAgentBudgets, readBudget } from './budgets.ts';
import { type BudgetForecastDeps, forecastBudget } from './forecast.ts';
import { previewBudget, type PreviewDeps } from './preview.ts';
import {
  agentBudget,
  agentBudgetBody,
  budget,
  budgetForecast,
  budgetPreview,
  previewQuery,
  putBudgetBody,
} from './schema.ts';

const TAG = 'Budgets';

const LIMIT_RULES =
  'Reaching a soft limit sends a warning. Past a hard limit, ingest is rejected with 429 and a Retry-After that ends with the period, or with 402 once the overage budget of the organization is spent.';

export function budgetRoutes(deps: BudgetsDeps & PreviewDeps): Route[] {
  return [
    getBudgetRoute(deps),
    previewBudgetRoute(deps),
    getBudgetForecastRoute(deps),
    putBudgetRoute(deps),
    listAgentBudgetsRoute(deps),
    putAgentBudgetRoute(deps),
  ];
}

function getBudgetRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/budgets',
    operation_id: 'getBudget',
    summary: 'Get usage and limits',
    description:
      'Returns the use of each resource in the current period, its limits and its status. Use counts every event, whether or not sampling kept it. `cost_usd` is the cost of these events, as repriced so far. Limits that are not set are `null`.',
    tag: TAG,
    permission: 'costs:read',
    response: budget,
    handler: async ({ org_id }) => ({ data: await readBudget(deps, org_id) }),
  });
}

function previewBudgetRoute(deps: BudgetsDeps & PreviewDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/budgets/preview',
    operation_id: 'previewBudget',
    summary: 'Preview a hard limit',
    description:
      'Returns the day from which a hard limit would have been reached in the current budget period and in each of the two periods before it, from the use on each day of receipt (UTC). Nothing is changed. With `agent_id`, the limit is one of the agent, on `tokens` or `cost_usd`. Use beyond the limit is what ingest would have rejected at most: the use of agents with limits of their own counts too, although their own limits would have applied to them.',
    tag: TAG,
    permission: 'costs:read',
    query: previewQuery,
    response: budgetPreview,
    handler: async ({ org_id, query, signal }) => ({ data: await previewBudget(deps, org_id, query, signal) }),
  });
}

function getBudgetForecastRoute(deps: BudgetForecastDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/budgets/forecast',
    operation_id: 'getBudgetForecast',
    summary: 'Forecast use against limits',
    description:
      'Returns the use of each resource since the start of the budget period by day, its forecast with the 95% prediction interval to the end of the period, and the days on which it reaches the limits. A least-squares line is fitted to the use on each day of receipt (UTC) of up to 90 whole days before today. `cost.forecast_breach` follows the same forecast.',
    tag: TAG,
    permission: 'costs:read',
    response: budgetForecast,
    handler: async ({ org_id, signal }) => ({ data: await forecastBudget(deps, org_id, signal) }),
  });
}

function putBudgetRoute(deps: BudgetsDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/budget',
    operation_id: 'putBudget',
    summary: 'Set the limits of the organization',
    description: `Sets the limits that are given. A limit that is left out stays; null clears it. A soft_limit above the hard_limit returns 422. ${LIMIT_RULES}`,
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'budget.update', target: 'budget', param: 'org_id' },
    params: orgParams,
    body: putBudgetBody,
    example: {
      tokens: { soft_limit: 8_000_000, hard_limit: 10_000_000 },
      storage_mb: { soft_limit: null, hard_limit: 5000 },
      cost_usd: { soft_limit: 400, hard_limit: 499.99 },
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
    summary: 'List agent budgets',
    description:
      'Returns the agents that have limits of their own on tokens or cost, sorted by id, with their use in the current period.',
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
    summary: 'Set the limits of an agent',
    description: `Sets limits on tokens and cost that replace those of the organization on the same resource for events that carry this agent_id. A limit that is left out stays. The use of the agent still counts in the organization's total. Setting both limits of a resource to null removes them. ${LIMIT_RULES}`,
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'budget.agent_update', target: 'budget', sets: true },
    params: orgParams,
    body: agentBudgetBody,
    example: {
      agent_id: 'agent_support',
      tokens: { soft_limit: 800_000, hard_limit: 1_000_000 },
      cost_usd: { hard_limit: 25 },
    },
    status: 201,
    response: agentBudget,
    handler: async ({ org_id, body, audit }) => {
      const { before, after, budget: data } = await putAgentBudget(deps, org_id, body);
      audit.target(body.agent_id);
      audit.changes(fromTo(before, after, AGENT_RESOURCES));
      return { data };
    },
  });
}
