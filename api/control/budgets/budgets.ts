// Reads and sets the budgets of organizations and agents. Use is always read as the sum of what has
// landed.
import {
  addUsed,
  agentLimits,
  amountOf,
  limitedAgents,
  limitsOfAgent,
  nothingUsed,
  percentageOf,
  statusOf,
  type Used,
} from '../../../pipeline/domain/budgets/budget.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { Period } from '../../../pipeline/domain/budgets/period.ts';
import {
  AGENT_LIMITS_MAX,
  type AgentResourceName,
  agentScope,
  type BudgetRecord,
  type Limits,
  NO_LIMITS,
  RESOURCES,
  unlimited,
} from '../../../schemas/records/budget.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readPeriodSums } from '../../../sql/stores/usage.ts';
import { touched } from '../../http/changes.ts';
import { ApiError } from '../../http/errors.ts';
import type { AgentBudget, AgentBudgetBody, Budget, PutBudgetBody } from './schema.ts';
import type { BudgetStore } from './store.ts';

export interface BudgetsDeps {
  budgets: BudgetStore;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Returns the current budget period of an organization. */
  periodOf: (org_id: string) => Period;
  planOf: (org_id: string) => string;
  /** Resolves when stored limits apply to what this process admits, after a bounded time. */
  inForce: (org_id: string) => Promise<void>;
}

/** Returns the use of an organization in a period, and that of some of its agents. */
async function usedOf(
  deps: BudgetsDeps,
  org_id: string,
  period: Period,
  agents: readonly string[] = [],
): Promise<{ org: Used; agents: Map<string, Used> }> {
  const org = nothingUsed();
  const byAgent = new Map<string, Used>();
  for (const { cost_usd, ...row } of await readPeriodSums(deps.clickhouse, {
    org_id,
    from: period.start,
    until: period.end,
    agents,
  })) {
    const part = { ...row, cost_pico_usd: usdToPico(cost_usd) };
    addUsed(org, part);
    const own = byAgent.get(row.agent_id) ?? nothingUsed();
    addUsed(own, part);
    byAgent.set(row.agent_id, own);
  }
  return { org, agents: byAgent };
}

const resourceOf = (used: number, limits: Limits) => ({
  used,
  ...limits,
  percentage: percentageOf(used, limits),
  status: statusOf(used, limits),
});

/** Returns the budget of an organization. */
export async function readBudget(deps: BudgetsDeps, org_id: string): Promise<Budget> {
  const period = deps.periodOf(org_id);
  const { org } = await usedOf(deps, org_id, period);
  return budgetOf(deps, deps.budgets.get(org_id) ?? unlimited(org_id), period, org);
}

function budgetOf(deps: BudgetsDeps, record: BudgetRecord, period: Period, org: Used): Budget {
  const { org_id } = record;
  return {
    org_id,
    period: period.kind,
    period_start: new Date(period.start).toISOString(),
    period_end: new Date(period.end).toISOString(),
    tokens: resourceOf(amountOf(org, 'tokens'), record.tokens),
    storage_mb: resourceOf(amountOf(org, 'storage_mb'), record.storage_mb),
    sandbox_seconds: resourceOf(amountOf(org, 'sandbox_seconds'), record.sandbox_seconds),
    cost_usd: resourceOf(amountOf(org, 'cost_usd'), record.cost_usd),
    plan_name: deps.planOf(org_id),
    total_cost_usd: picoToUsd(org.cost_pico_usd),
  };
}

/** Returns the budgets of the agents with own limits, sorted by id. */
export async function readAgentBudgets(deps: BudgetsDeps, org_id: string): Promise<AgentBudget[]> {
  const period = deps.periodOf(org_id);
  const record = deps.budgets.get(org_id) ?? unlimited(org_id);
  const agents = limitedAgents(record).sort();
  const used = await usedOf(deps, org_id, period, agents);
  return agents.map((agent_id) =>
    agentBudgetOf(agent_id, ownLimitsOf(record, agent_id), period, used.agents.get(agent_id)),
  );
}

/** An agent's own limits by resource. */
type OwnLimits = Record<AgentResourceName, Limits>;

const ownLimitsOf = (record: BudgetRecord, agent_id: string): OwnLimits => ({
  tokens: limitsOfAgent(record, agent_id, 'tokens') ?? NO_LIMITS,
  cost_usd: limitsOfAgent(record, agent_id, 'cost_usd') ?? NO_LIMITS,
});

const agentBudgetOf = (agent_id: string, own: OwnLimits, period: Period, used: Used = nothingUsed()): AgentBudget => ({
  agent_id,
  period_start: new Date(period.start).toISOString(),
  tokens: resourceOf(amountOf(used, 'tokens'), own.tokens),
  cost_usd: resourceOf(amountOf(used, 'cost_usd'), own.cost_usd),
});

/** Limits as a request gives them. */
type GivenLimits = PutBudgetBody['tokens'];

/**
 * Sets limits of an organization: a limit that is left out stays, null clears it. Use is read
 * first, so that nothing changes if the response cannot be computed.
 *
 * @throws ApiError invalid_request, upstream_unavailable
 */
export async function putBudget(
  deps: BudgetsDeps,
  org_id: string,
  body: PutBudgetBody,
): Promise<{ before: BudgetRecord; after: BudgetRecord; budget: Budget }> {
  const period = deps.periodOf(org_id);
  const { org } = await usedOf(deps, org_id, period);
  let before = unlimited(org_id);
  const after = await changeRecord(deps, org_id, (record) => {
    before = record;
    const changed = { ...record };
    for (const name of RESOURCES) changed[name] = mergedLimits(record[name], body[name], name);
    return changed;
  });
  await deps.inForce(org_id);
  return { before, after, budget: budgetOf(deps, after, period, org) };
}

/**
 * Sets an agent's own limits on tokens and cost: what is left out stays. Where both limits of a
 * resource are null, those of the organization apply to the agent again.
 *
 * @throws ApiError invalid_request, upstream_unavailable
 */
export async function putAgentBudget(
  deps: BudgetsDeps,
  org_id: string,
  { agent_id, ...given }: AgentBudgetBody,
): Promise<{ before: OwnLimits; after: OwnLimits; budget: AgentBudget }> {
  const period = deps.periodOf(org_id);
  const used = await usedOf(deps, org_id, period, [agent_id]);
  let before: OwnLimits = { tokens: NO_LIMITS, cost_usd: NO_LIMITS };
  const changed = await changeRecord(deps, org_id, (record) => {
    before = ownLimitsOf(record, agent_id);
    const withOwn = (resource: AgentResourceName): Record<string, Limits> => {
      const scope = agentScope(agent_id);
      const own = mergedLimits(before[resource], given[resource], resource);
      const others = Object.entries(agentLimits(record, resource)).filter(([other]) => other !== scope);
      const isCleared = own.soft_limit === null && own.hard_limit === null;
      return Object.fromEntries(isCleared ? others : [...others, [scope, own] as const]);
    };
    const next = { ...record, agents: withOwn('tokens'), agent_costs: withOwn('cost_usd') };
    if (limitedAgents(next).length > AGENT_LIMITS_MAX)
      throw new ApiError(
        'invalid_request',
        `agent_id: at most ${AGENT_LIMITS_MAX} agents of an organization can have limits of their own`,
      );
    return next;
  });
  await deps.inForce(org_id);
  const after = ownLimitsOf(changed, agent_id);
  return { before, after, budget: agentBudgetOf(agent_id, after, period, used.agents.get(agent_id)) };
}

function mergedLimits(now: Limits, given: GivenLimits, field: string): Limits {
  const { soft_limit = now.soft_limit, hard_limit = now.hard_limit } = given ?? {};
  if (soft_limit !== null && hard_limit !== null && soft_limit > hard_limit)
    throw new ApiError('invalid_request', `${field}.soft_limit: must be at most the hard limit (${hard_limit})`);
  return { soft_limit, hard_limit };
}

export async function changeRecord(
  deps: Pick<BudgetsDeps, 'budgets' | 'now'>,
  org_id: string,
  apply: (record: BudgetRecord) => BudgetRecord,
): Promise<BudgetRecord> {
  try {
    return await deps.budgets.change(org_id, (record) => touched(record, apply(record), deps.now()));
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw new ApiError('upstream_unavailable', 'The store of budgets cannot be written. Try again.', {
      cause: error,
    });
  }
}
