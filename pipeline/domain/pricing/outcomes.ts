// Named outcomes of an event (attributes.outcomes, {name: number}) as exact amounts, so that sums
// do not depend on their order. In: the attribute as sent. Out: names with amounts in units of
// 1e-12. A value that is not a number or exceeds the bounds is not counted and stays in the
// attributes. Pure.
import { decimalToScaled } from './money.ts';

/** Decimals of an amount in the store. */
export const OUTCOME_DECIMALS = 12;
const NAMES_MAX = 64;
const NAME_LENGTH_MAX = 128;
/** Maximum amount: larger numbers are no counts, and sums stay within Decimal(38, 12). */
const AMOUNT_MAX = 1e12;

/** Amounts by name, in units of 1e-12. */
export type Outcomes = ReadonlyMap<string, bigint>;

export const NO_OUTCOMES: Outcomes = new Map();

export function outcomesOf(attribute: unknown): Outcomes {
  if (typeof attribute !== 'object' || attribute === null || Array.isArray(attribute)) return NO_OUTCOMES;
  const outcomes = new Map<string, bigint>();
  for (const [name, amount] of Object.entries(attribute)) {
    if (outcomes.size >= NAMES_MAX) break;
    if (name === '' || name.length > NAME_LENGTH_MAX) continue;
    if (typeof amount !== 'number' || !(Math.abs(amount) <= AMOUNT_MAX)) continue;
    const wellFormed = name.toWellFormed();
    outcomes.set(wellFormed, (outcomes.get(wellFormed) ?? 0n) + decimalToScaled(String(amount), OUTCOME_DECIMALS));
  }
  return outcomes.size === 0 ? NO_OUTCOMES : outcomes;
}

/** Returns the sums of both, name by name. */
export function addOutcomes(a: Outcomes, b: Outcomes): Outcomes {
  if (b.size === 0) return a;
  if (a.size === 0) return b;
  const sums = new Map(a);
  for (const [name, amount] of b) sums.set(name, (sums.get(name) ?? 0n) + amount);
  return sums;
}
