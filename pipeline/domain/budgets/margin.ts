// Where a limit is so near that no process may let something in by what it alone knows. Pure.
//
// A process knows what the others let in a moment late. It may decide alone while what is left of a limit is more than all of
// them together could let in before they know of each other. That is bounded from two sides:
// - By time: a limit that would take DRAIN_MS or longer to use up whole loses at most (age + UNTOLD_MS) / DRAIN_MS of itself in
//   the time that this process is behind. The age of its knowledge is not assumed: it is measured by its own messages, which
//   come back to it behind everything that the server had before them. A process that was paused, or is cut off, is old.
// - By amount: in a burst from nothing, every process lets in at once as much as has been sent to it. Each is taken to let in
//   BURST requests of the size of the one in question, and twice what this process has under way, which is more where more
//   senders than that are at work.
import type { BudgetRecord } from '../../../schemas/records/budget.ts';
import { amountOf, limitsOfAgent, type Used } from './budget.ts';

/** The time in which a limit is used up at the fastest, bursts aside: 1,000,000 tokens in 250 ms are 4,000,000 a second. */
const DRAIN_MS = 250;
/** What the others have let in and not handed over yet: what they do between two turns of their event loops. */
const UNTOLD_MS = 25;
/** Requests that a process may let in before the others know of the first. */
const BURST = 64;
const AHEAD = 2;

/** How far this process's knowledge reaches. */
export interface View {
  /** Live API processes, this one among them. With one there is nothing that it does not know. */
  processes: number;
  /** Of the newest moment from which it surely knows everything, milliseconds. */
  age_ms: number;
  /** What each process may let in at once: see burstOf. */
  burst: Used;
}

/**
 * What each process may let in at once.
 * @param underWay what this one let in or asks for elsewhere and has not ended
 * @param asked what is to be let in now
 */
export function burstOf(underWay: Used, asked: Used): Used {
  return {
    tokens: AHEAD * underWay.tokens + BURST * asked.tokens,
    storage_bytes: AHEAD * underWay.storage_bytes + BURST * asked.storage_bytes,
    sandbox_micros: AHEAD * underWay.sandbox_micros + BURST * asked.sandbox_micros,
    cost_pico_usd: BigInt(AHEAD) * underWay.cost_pico_usd + BigInt(BURST) * asked.cost_pico_usd,
  };
}

/** Whether `limit`, of which `used` is used, is to be decided in one place. All in one unit. */
export function isNear(
  limit: number,
  used: number,
  burst: number,
  { processes, age_ms }: Omit<View, 'burst'>,
): boolean {
  if (processes <= 1) return false;
  return limit - used <= (limit * (UNTOLD_MS + age_ms)) / DRAIN_MS + processes * burst;
}

/**
 * Whether an event of the agent that may come in comes near a hard limit. What an agent with limits of its own uses is not
 * refused by the org's limit on tokens, but brings it nearer for all the others.
 */
export function isNearAny(
  record: BudgetRecord,
  agent_id: string,
  org: Used,
  agentTokens: (agent_id: string) => number,
  view: View,
): boolean {
  const { burst } = view;
  const own = limitsOfAgent(record, agent_id);
  if (own !== null && own.hard_limit !== null && isNear(own.hard_limit, agentTokens(agent_id), burst.tokens, view))
    return true;
  for (const resource of ['tokens', 'storage_mb', 'sandbox_seconds'] as const) {
    const { hard_limit } = record[resource];
    const used = amountOf(org, resource);
    if (hard_limit !== null && used < hard_limit && isNear(hard_limit, used, amountOf(burst, resource), view))
      return true;
  }
  return false;
}
