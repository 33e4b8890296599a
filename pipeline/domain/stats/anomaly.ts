// Detects days whose cost is out of the ordinary: the z-score against the days before, and the
// model and agent that caused it. Pure. Sums are exact whole pico-USD, so a history without
// variation is recognised as flat, whatever its amounts.
import { type AnomalyConfig, Z_MAX } from '../../../schemas/records/cost_config.ts';
import { zeroFilled } from '../time/days.ts';

/** With fewer days of history no day is an anomaly. */
const HISTORY_DAYS_MIN = 7;

/** Cost of a model and an agent on a day. */
export interface DayCost {
  day: number;
  model: string;
  agent_id: string;
  cost_pico_usd: bigint;
}

export interface FoundAnomaly {
  /** Negative for a day that cost less than expected. */
  z: number;
  /** Mean of the history, rounded to a pico-USD. */
  expected_pico_usd: bigint;
  actual_pico_usd: bigint;
  /**
   * The model and agent that deviate most from their own mean, in the direction of the day; empty
   * for calls without one.
   */
  attributed_to: { model: string; agent_id: string };
}

/** A day to examine. */
export interface JudgedDay {
  day: number;
  /** True while the day is not over: its cost so far can be too high, but never too low. */
  running: boolean;
  /** First day on which the organization had data. */
  first_day: number;
  /** Costs of the day and of the lookback_days days before it; others are ignored. */
  costs: readonly DayCost[];
}

/**
 * Returns the anomaly of the day; null for an ordinary day, or with too little history to decide.
 */
export function findAnomaly({ day, running, first_day, costs }: JudgedDay, config: AnomalyConfig): FoundAnomaly | null {
  const from = Math.max(first_day, day - config.lookback_days);
  const n = day - from;
  if (n < HISTORY_DAYS_MIN) return null;
  const totals = new Map<number, bigint>();
  for (const cost of costs) totals.set(cost.day, (totals.get(cost.day) ?? 0n) + cost.cost_pico_usd);
  const history = zeroFilled(totals, from, day);
  const actual = totals.get(day) ?? 0n;
  const sum = history.reduce((total, one) => total + one, 0n);
  const z = zScore(history, sum, actual);
  const flat = history.every((one) => one === history[0]);
  const far = flat ? z !== 0 : Math.abs(z) >= config.z_threshold;
  if (!far || (running && z < 0)) return null;
  return {
    z: Math.min(Z_MAX, Math.max(-Z_MAX, z)),
    expected_pico_usd: (2n * sum + BigInt(n)) / (2n * BigInt(n)),
    actual_pico_usd: actual,
    attributed_to: attribute(costs, from, day, z > 0 ? 1n : -1n),
  };
}

/**
 * (actual - mean) / sample standard deviation, with all differences times n so that they are exact;
 * ±Z_MAX for a deviation from a flat history.
 */
function zScore(history: readonly bigint[], sum: bigint, actual: bigint): number {
  const n = BigInt(history.length);
  const away = n * actual - sum;
  if (away === 0n) return 0;
  const squares = history.reduce((total, one) => total + (n * one - sum) ** 2n, 0n);
  if (squares === 0n) return away > 0n ? Z_MAX : -Z_MAX;
  return Number(away) / Math.sqrt(Number(squares) / (history.length - 1));
}

function attribute(costs: readonly DayCost[], from: number, day: number, sign: bigint): FoundAnomaly['attributed_to'] {
  const n = BigInt(day - from);
  const excess = new Map<string, { model: string; agent_id: string; by: bigint }>();
  for (const { day: on, model, agent_id, cost_pico_usd } of costs) {
    if (on < from || on > day) continue;
    const key = JSON.stringify([model, agent_id]);
    const known = excess.get(key) ?? { model, agent_id, by: 0n };
    known.by += sign * (on === day ? n * cost_pico_usd : -cost_pico_usd);
    excess.set(key, known);
  }
  let most: { model: string; agent_id: string; by: bigint } | null = null;
  // Of equals the first by name, so that a repeated run gives the same answer.
  for (const [, one] of [...excess].sort(([a], [b]) => (a < b ? -1 : 1)))
    if (most === null || one.by > most.by) most = one;
  return { model: most?.model ?? '', agent_id: most?.agent_id ?? '' };
}
