// Rules of budgets: status and percentage of a resource, and the hard limit that rejects an event.
// Pure.
import type { BudgetRecord, Limits, ResourceName } from '../../../schemas/records/budget.ts';
import { agentScope, RESOURCES } from '../../../schemas/records/budget.ts';

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

/** Returns the use of one resource in the unit of its limits. */
export function amountOf(used: Used, resource: ResourceName): number {
  if (resource === 'tokens') return used.tokens;
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
 * @returns the sum, and the index of the part in which it reaches the hard limit; -1 if it never does
 */
export function reachOf(
  parts: readonly Used[],
  resource: ResourceName,
  hard_limit: number,
): { used: number; at: number } {
  const sum = nothingUsed();
  let at = -1;
  for (const [index, part] of parts.entries()) {
    addUsed(sum, part);
    if (at === -1 && amountOf(sum, resource) >= hard_limit) at = index;
  }
  return { used: amountOf(sum, resource), at };
}

/** Returns true when the record limits any resource. */
export function isBudgeted(record: BudgetRecord): boolean {
  return RESOURCES.some((name) => isLimited(record[name])) || Object.values(record.agents).some(isLimited);
}

const isLimited = ({ soft_limit, hard_limit }: Limits): boolean => soft_limit !== null || hard_limit !== null;

/** Returns true when any hard limit is set, so that events can be rejected. */
export function hasHardLimit(record: BudgetRecord): boolean {
  return (
    RESOURCES.some((name) => record[name].hard_limit !== null) ||
    Object.values(record.agents).some((own) => own.hard_limit !== null)
  );
}

/** A hard limit that rejects an event. */
export interface Blocked {
  /** Name of the crossed limit: the resource, or agent:<id> for an agent's own tokens. */
  scope: string;
  resource: ResourceName;
  /** The agent whose own limit this is; null for the organization's limit. */
  agent_id: string | null;
  hard_limit: number;
}

/** Returns an agent's own limits on tokens; null where the organization's limits apply to it. */
export function limitsOfAgent(record: BudgetRecord, agent_id: string): Limits | null {
  const own = agent_id === '' ? undefined : record.agents[agentScope(agent_id)];
  return own !== undefined && isLimited(own) ? own : null;
}

/** Returns the agents that have limits of their own. */
export function limitedAgents(record: BudgetRecord): string[] {
  return Object.keys(record.agents).map((scope) => scope.slice(agentScope('').length));
}

/**
 * Returns the first hard limit that rejects an event of the agent; null when the event is admitted.
 * An agent's own limit on tokens replaces the organization's; the other resources are limited for
 * the organization alone.
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
