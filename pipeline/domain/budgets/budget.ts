// Rules of budgets: status and percentage of a resource, and the hard limit that rejects an event.
// Pure.
import type { AgentResourceName, BudgetRecord, Limits, ResourceName } from '../../../schemas/records/budget.ts';
import { AGENT_RESOURCES, agentScope, limitScope, RESOURCES } from '../../../schemas/records/budget.ts';
import { picoToUsd, usdToPico } from '../pricing/money.ts';

const BYTES_PER_MB = 1_000_000;
const MICROS_PER_SECOND = 1_000_000;

/** Use of each resource in whole base units, so that sums are exact. */
export interface Used {
  tokens: number;
  storage_bytes: number;
  sandbox_micros: number;
  cost_pico_usd: bigint;
}

export const nothingUsed = (): Used => ({ tokens: 0, storage_bytes: 0, sandbox_micros: 0, cost_pico_usd: 0n });

export const isNothing = ({ tokens, storage_bytes, sandbox_micros, cost_pico_usd }: Used): boolean =>
  tokens === 0 && storage_bytes === 0 && sandbox_micros === 0 && cost_pico_usd === 0n;

/** Adds `more` to `used` in place, or subtracts it when `sign` is -1. */
export function addUsed(used: Used, more: Used, sign: 1 | -1 = 1): void {
  used.tokens += sign * more.tokens;
  used.storage_bytes += sign * more.storage_bytes;
  used.sandbox_micros += sign * more.sandbox_micros;
  used.cost_pico_usd += sign === 1 ? more.cost_pico_usd : -more.cost_pico_usd;
}

/**
 * Returns the use of one resource in the unit of its limits. Costs are the double nearest to the
 * exact sum, as limits in USD are the double nearest to their decimal text: below 9,007 USD both
 * are exact to 12 decimals.
 */
export function amountOf(used: Used, resource: ResourceName): number {
  if (resource === 'tokens') return used.tokens;
  if (resource === 'cost_usd') return picoToUsd(used.cost_pico_usd);
  return resource === 'storage_mb' ? used.storage_bytes / BYTES_PER_MB : used.sandbox_micros / MICROS_PER_SECOND;
}

export type BudgetStatus = 'ok' | 'soft_exceeded' | 'hard_exceeded';

/** Returns the status of a resource. A limit counts as exceeded as soon as use equals it. */
export function statusOf(amount: number, { soft_limit, hard_limit }: Limits): BudgetStatus {
  if (hard_limit !== null && amount >= hard_limit) return 'hard_exceeded';
  return soft_limit !== null && amount >= soft_limit ? 'soft_exceeded' : 'ok';
}

/**
 * Returns use as a percentage of the hard limit, else of the soft limit; 0 without a limit. A limit
 * of 0 is used up: 100.
 */
export function percentageOf(amount: number, { soft_limit, hard_limit }: Limits): number {
  const limit = hard_limit ?? soft_limit;
  if (limit === null) return 0;
  return limit === 0 ? 100 : (amount * 100) / limit;
}

/**
 * Sums the use of consecutive parts of a period.
 * @returns the sum, what of it exceeds the hard limit, and the index of the part in which it
 * reaches the limit; -1 if it never does
 */
export function reachOf(
  parts: readonly Used[],
  resource: ResourceName,
  hard_limit: number,
): { used: number; beyond: number; at: number } {
  const sum = nothingUsed();
  let at = -1;
  for (const [index, part] of parts.entries()) {
    addUsed(sum, part);
    if (at === -1 && amountOf(sum, resource) >= hard_limit) at = index;
  }
  return { used: amountOf(sum, resource), beyond: beyondOf(sum, resource, hard_limit), at };
}

/** Returns the use beyond a limit; that of costs is exact. */
function beyondOf(used: Used, resource: ResourceName, limit: number): number {
  if (resource !== 'cost_usd') return Math.max(0, amountOf(used, resource) - limit);
  const beyond = used.cost_pico_usd - usdToPico(limit);
  return beyond > 0n ? picoToUsd(beyond) : 0;
}

/** Returns true when the record limits any resource. */
export function isBudgeted(record: BudgetRecord): boolean {
  return RESOURCES.some((name) => isLimited(record[name])) || ownLimits(record).some(isLimited);
}

/** Returns the limits of single agents on every resource. */
const ownLimits = (record: BudgetRecord): Limits[] =>
  AGENT_RESOURCES.flatMap((resource) => Object.values(agentLimits(record, resource)));

/** Returns the limits of single agents on a resource by agentScope. */
export const agentLimits = (record: BudgetRecord, resource: AgentResourceName): Record<string, Limits> =>
  resource === 'tokens' ? record.agents : record.agent_costs;

const isLimited = ({ soft_limit, hard_limit }: Limits): boolean => soft_limit !== null || hard_limit !== null;

/** Returns true when any hard limit is set, so that events can be rejected. */
export function hasHardLimit(record: BudgetRecord): boolean {
  return (
    RESOURCES.some((name) => record[name].hard_limit !== null) ||
    ownLimits(record).some((own) => own.hard_limit !== null)
  );
}

/** A hard limit that rejects an event. */
export interface Blocked {
  /** Name of the crossed limit; see limitScope. */
  scope: string;
  resource: ResourceName;
  /** The agent whose own limit this is; null for the organization's limit. */
  agent_id: string | null;
  hard_limit: number;
}

const isAgentResource = (resource: ResourceName): resource is AgentResourceName =>
  (AGENT_RESOURCES as readonly ResourceName[]).includes(resource);

/** Returns an agent's own limits on a resource; null where the organization's apply to it. */
export function limitsOfAgent(
  record: BudgetRecord,
  agent_id: string,
  resource: AgentResourceName = 'tokens',
): Limits | null {
  const own = agent_id === '' ? undefined : agentLimits(record, resource)[agentScope(agent_id)];
  return own !== undefined && isLimited(own) ? own : null;
}

/** Returns the agents that have limits of their own. */
export function limitedAgents(record: BudgetRecord): string[] {
  const scopes = AGENT_RESOURCES.flatMap((resource) => Object.keys(agentLimits(record, resource)));
  return [...new Set(scopes)].map((scope) => scope.slice(agentScope('').length));
}

/**
 * Returns the hard limits that apply to an event of the agent, one for each resource that has one.
 * An agent's own limit replaces the organization's on the same resource.
 */
export function hardLimitsFor(record: BudgetRecord, agent_id: string): Blocked[] {
  return RESOURCES.flatMap((resource) => {
    const own = isAgentResource(resource) ? limitsOfAgent(record, agent_id, resource) : null;
    const { hard_limit } = own ?? record[resource];
    const whose = own === null ? null : agent_id;
    return hard_limit === null ? [] : [{ scope: limitScope(resource, whose), resource, agent_id: whose, hard_limit }];
  });
}

/** Returns the first hard limit that rejects an event of the agent; null when it is admitted. */
export function blockedBy(
  record: BudgetRecord,
  agent_id: string,
  org: Used,
  agentUsed: (agent_id: string) => Used,
): Blocked | null {
  const reached = ({ resource, agent_id: own, hard_limit }: Blocked): boolean =>
    amountOf(own === null ? org : agentUsed(own), resource) >= hard_limit;
  return hardLimitsFor(record, agent_id).find(reached) ?? null;
}
