// The rules of budgets: status and percentage of a resource, and whether an event may come in. Pure.
import type { BudgetRecord, Limits, ResourceName } from '../../../schemas/records/budget.ts';
import { agentScope, RESOURCES } from '../../../schemas/records/budget.ts';

const BYTES_PER_MB = 1_000_000;
const MICROS_PER_SECOND = 1_000_000;

/** What was used, in whole units, so that sums are exact. */
export interface Used {
  tokens: number;
  storage_bytes: number;
  sandbox_micros: number;
  cost_pico_usd: bigint;
}

export const nothingUsed = (): Used => ({ tokens: 0, storage_bytes: 0, sandbox_micros: 0, cost_pico_usd: 0n });

export const isNothing = ({ tokens, storage_bytes, sandbox_micros, cost_pico_usd }: Used): boolean =>
  tokens === 0 && storage_bytes === 0 && sandbox_micros === 0 && cost_pico_usd === 0n;

/** Adds `more` to `used`, or takes it away. */
export function addUsed(used: Used, more: Used, sign: 1 | -1 = 1): void {
  used.tokens += sign * more.tokens;
  used.storage_bytes += sign * more.storage_bytes;
  used.sandbox_micros += sign * more.sandbox_micros;
  used.cost_pico_usd += sign === 1 ? more.cost_pico_usd : -more.cost_pico_usd;
}

/** Of one resource, in the unit of its limits. */
export function amountOf(used: Used, resource: ResourceName): number {
  if (resource === 'tokens') return used.tokens;
  return resource === 'storage_mb' ? used.storage_bytes / BYTES_PER_MB : used.sandbox_micros / MICROS_PER_SECOND;
}

export type BudgetStatus = 'ok' | 'soft_exceeded' | 'hard_exceeded';

/** A limit is exceeded from the moment that the use has reached it. */
export function statusOf(amount: number, { soft_limit, hard_limit }: Limits): BudgetStatus {
  if (hard_limit !== null && amount >= hard_limit) return 'hard_exceeded';
  return soft_limit !== null && amount >= soft_limit ? 'soft_exceeded' : 'ok';
}

/** Of the hard limit, of the soft one where there is no hard one, 0 where there is none. A limit of 0 is used up: 100. */
export function percentageOf(amount: number, { soft_limit, hard_limit }: Limits): number {
  const limit = hard_limit ?? soft_limit;
  if (limit === null) return 0;
  return limit === 0 ? 100 : (amount * 100) / limit;
}

/** Whether the record limits or watches anything at all. */
export function isBudgeted(record: BudgetRecord): boolean {
  return RESOURCES.some((name) => isLimited(record[name])) || Object.values(record.agents).some(isLimited);
}

const isLimited = ({ soft_limit, hard_limit }: Limits): boolean => soft_limit !== null || hard_limit !== null;

/** Whether anything can be refused. */
export function hasHardLimit(record: BudgetRecord): boolean {
  return (
    RESOURCES.some((name) => record[name].hard_limit !== null) ||
    Object.values(record.agents).some((own) => own.hard_limit !== null)
  );
}

/** A hard limit that stands in the way of an event. */
export interface Blocked {
  /** How a crossing is named: the resource, or agent:<id> for an agent's own tokens. */
  scope: string;
  resource: ResourceName;
  /** Set where the limit is the agent's own. */
  agent_id: string | null;
  hard_limit: number;
}

/** An agent's own limits on tokens; null where the org's hold for it. */
export function limitsOfAgent(record: BudgetRecord, agent_id: string): Limits | null {
  const own = agent_id === '' ? undefined : record.agents[agentScope(agent_id)];
  return own !== undefined && isLimited(own) ? own : null;
}

/** Agents that have limits of their own. */
export function limitedAgents(record: BudgetRecord): string[] {
  return Object.keys(record.agents).map((scope) => scope.slice(agentScope('').length));
}

/**
 * The first hard limit that an event of the agent runs into; null when it may come in. An agent's own limit on tokens
 * takes the place of the org's; the other resources are the org's alone.
 */
export function blockedBy(
  record: BudgetRecord,
  agent_id: string,
  org: Used,
  agentTokens: (agent_id: string) => number,
): Blocked | null {
  const own = limitsOfAgent(record, agent_id);
  if (own !== null) {
    if (statusOf(agentTokens(agent_id), own) === 'hard_exceeded')
      return { scope: agentScope(agent_id), resource: 'tokens', agent_id, hard_limit: own.hard_limit ?? 0 };
  } else if (statusOf(org.tokens, record.tokens) === 'hard_exceeded') {
    return { scope: 'tokens', resource: 'tokens', agent_id: null, hard_limit: record.tokens.hard_limit ?? 0 };
  }
  for (const resource of ['storage_mb', 'sandbox_seconds'] as const) {
    if (statusOf(amountOf(org, resource), record[resource]) === 'hard_exceeded')
      return { scope: resource, resource, agent_id: null, hard_limit: record[resource].hard_limit ?? 0 };
  }
  return null;
}
