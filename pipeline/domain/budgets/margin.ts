// Decides when a limit is so near that an API process may no longer admit events by its own
// knowledge. Pure.
//
// A process learns with a short delay what the other processes admit. It may decide alone while the
// remainder of a limit exceeds what all processes together could admit within that delay. Two
// bounds apply:
// - Time: a limit that takes DRAIN_MS or longer to use up loses at most (age + UNTOLD_MS) /
//   DRAIN_MS of itself during the delay. The age of the process's knowledge is measured, not
//   assumed: its own messages return to it behind everything that the server received before them.
//   A process that was paused or is cut off measures a high age.
// - Amount: in a burst from nothing, every process admits at once whatever it receives. Each
//   process is assumed to admit BURST requests of the size of the one in question, plus twice what
//   this process has in flight, which is more when more senders are active.
import { type BudgetRecord, RESOURCES } from '../../../schemas/records/budget.ts';
import { amountOf, hardLimitsFor, type Used } from './budget.ts';

/**
 * Shortest time in which a limit is used up, bursts aside: 1,000,000 tokens in 250 ms are 4,000,000
 * a second.
 */
const DRAIN_MS = 250;
/**
 * Time in which other processes admit events before they publish that: one turn of their event
 * loops and the pace of their messages.
 */
const UNREPORTED_MS = 25;
/** Requests that a process may admit before the others learn of the first. */
const BURST = 64;
const AHEAD = 2;

/** What this process knows of the others, and how old that knowledge is. */
export interface View {
  /** Number of live API processes, including this one. A single process knows everything. */
  processes: number;
  /** Age in milliseconds of the newest moment up to which this process's knowledge is complete. */
  age_ms: number;
  /** Use that each process may admit at once; see burstOf. */
  burst: Used;
}

/**
 * Returns the use that each process may admit at once.
 * @param inFlight use that this process has admitted or asked another process for, and that has not
 * ended
 * @param asked use of the request in question
 */
export function burstOf(inFlight: Used, asked: Used): Used {
  return {
    tokens: AHEAD * inFlight.tokens + BURST * asked.tokens,
    storage_bytes: AHEAD * inFlight.storage_bytes + BURST * asked.storage_bytes,
    sandbox_micros: AHEAD * inFlight.sandbox_micros + BURST * asked.sandbox_micros,
    cost_pico_usd: BigInt(AHEAD) * inFlight.cost_pico_usd + BigInt(BURST) * asked.cost_pico_usd,
  };
}

/**
 * Returns true when one process has to decide about `limit`, of which `used` is used. All amounts
 * are in one unit.
 */
export function isNear(
  limit: number,
  used: number,
  burst: number,
  { processes, age_ms }: Omit<View, 'burst'>,
): boolean {
  if (processes <= 1) return false;
  return limit - used <= (limit * (UNREPORTED_MS + age_ms)) / DRAIN_MS + processes * burst;
}

/**
 * Returns true when an admissible event of the agent comes near a hard limit. An agent with limits
 * of its own is never rejected by the organization's limit on the same resource, but its use counts
 * towards it.
 */
export function isNearAny(
  record: BudgetRecord,
  agent_id: string,
  org: Used,
  agentUsed: (agent_id: string) => Used,
  view: View,
): boolean {
  const { burst } = view;
  for (const { resource, agent_id: own, hard_limit } of hardLimitsFor(record, agent_id)) {
    if (own === null) continue;
    if (isNear(hard_limit, amountOf(agentUsed(own), resource), amountOf(burst, resource), view)) return true;
  }
  for (const resource of RESOURCES) {
    const { hard_limit } = record[resource];
    const used = amountOf(org, resource);
    if (hard_limit !== null && used < hard_limit && isNear(hard_limit, used, amountOf(burst, resource), view))
      return true;
  }
  return false;
}
