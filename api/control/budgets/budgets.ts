// Reads and sets the budgets of organizations and agents. Use is always read as the sum of what has
// landed.
import {
  addUsed,
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
  agentScope,
  type BudgetRecord,
  type Limits,
  NO_LIMITS,
  RESOURCES,
} from '../../../schemas/records/budget.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readPeriodSums } from '../../../sql/stores/usage.ts';
import { touched } from '../../http/changes.ts';
import { ApiError } from '../../http/errors.ts';
import type { AgentBudget, AgentBudgetBody, Budget, PutBudgetBody } from './schema.ts';
import { type BudgetStore, unlimited } from './store.ts';

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

/** Returns the use of an organization in a period, and the tokens of some of its agents. */
async function usedOf(
  deps: BudgetsDeps,
  org_id: string,
  period: Period,
  agents: readonly string[] = [],
): Promise<{ org: Used; tokens: Map<string, number> }> {
  const org = nothingUsed();
  const tokens = new Map<string, number>();
  for (const { cost_usd, ...row } of await readPeriodSums(deps.clickhouse, {
    org_id,
    from: period.start,
    until: period.end,
    agents,
  })) {
    addUsed(org, { ...row, cost_pico_usd: usdToPico(cost_usd) });
    tokens.set(row.agent_id, (tokens.get(row.agent_id) ?? 0) + row.tokens);
  }
  return { org, tokens };
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
    plan_name: deps.planOf(org_id),
    total_cost_usd: picoToUsd(org.cost_pico_usd),
  };
}

/** Returns the budgets of the agents with own limits, sorted by id. */
export async function readAgentBudgets(deps: BudgetsDeps, org_id: string): Promise<AgentBudget[]> {
  const period = deps.periodOf(org_id);
  const record = deps.budgets.get(org_id) ?? unlimited(org_id);
  const agents = limitedAgents(record).sort();
  const { tokens } = await usedOf(deps, org_id, period, agents);
  return agents.map((agent_id) =>
    agentBudgetOf(agent_id, limitsOfAgent(record, agent_id) ?? NO_LIMITS, period, tokens),
  );
}

const agentBudgetOf = (
  agent_id: string,
  own: Limits,
  period: Period,
  tokens: ReadonlyMap<string, number>,
): AgentBudget => ({
  agent_id,
  period_start: new Date(period.start).toISOString(),
  tokens: resourceOf(tokens.get(agent_id) ?? 0, own),
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
 * Sets an agent's own limits on tokens. With both null, the limits of the organization apply to the
 * agent again.
 *
 * @throws ApiError invalid_request, upstream_unavailable
 */
export async function putAgentBudget(
  deps: BudgetsDeps,
  org_id: string,
  { agent_id, tokens }: AgentBudgetBody,
): Promise<{ before: { tokens: Limits }; after: { tokens: Limits }; budget: AgentBudget }> {
  const period = deps.periodOf(org_id);
  const used = await usedOf(deps, org_id, period, [agent_id]);
  const scope = agentScope(agent_id);
  let before = NO_LIMITS;
  const changed = await changeRecord(deps, org_id, (record) => {
    before = limitsOfAgent(record, agent_id) ?? NO_LIMITS;
    const own = mergedLimits(before, tokens, 'tokens');
    const others = Object.entries(record.agents).filter(([other]) => other !== scope);
    const kept = own.soft_limit === null && own.hard_limit === null ? others : [...others, [scope, own] as const];
    if (kept.length > AGENT_LIMITS_MAX)
      throw new ApiError(
        'invalid_request',
        `agent_id: at most ${AGENT_LIMITS_MAX} agents of an organization can have limits of their own`,
      );
    return { ...record, agents: Object.fromEntries(kept) };
  });
  await deps.inForce(org_id);
  const after = limitsOfAgent(changed, agent_id) ?? NO_LIMITS;
  return {
    before: { tokens: before },
    after: { tokens: after },
    budget: agentBudgetOf(agent_id, after, period, used.tokens),
  };
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
