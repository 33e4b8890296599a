// The period of a budget: a calendar month or a fiscal year, in UTC. Pure.

export type PeriodKind = 'month' | 'fiscal_year';

export interface PeriodRule {
  period: PeriodKind;
  /** Month in which a fiscal year begins, 1 to 12. */
  fiscal_year_start_month: number;
}

export interface Period {
  kind: PeriodKind;
  /** First instant of the period, milliseconds since the epoch. */
  start: number;
  /** First instant after the period. */
  end: number;
}

export const MONTHLY: PeriodRule = Object.freeze({ period: 'month', fiscal_year_start_month: 1 });

const DAY_MS = 86_400_000;
/** Days from a Monday to 1970-01-01. */
const EPOCH_WEEKDAY = 3;

/** Returns the day, the week from Monday, or the month (UTC) that contains an instant. */
export function keyPeriodAt(kind: 'day' | 'week' | 'month', at: number): { start: number; end: number } {
  if (kind === 'month') return periodAt(MONTHLY, at);
  const day = Math.floor(at / DAY_MS);
  if (kind === 'day') return { start: day * DAY_MS, end: (day + 1) * DAY_MS };
  const monday = day - ((day + EPOCH_WEEKDAY) % 7);
  return { start: monday * DAY_MS, end: (monday + 7) * DAY_MS };
}

/**
 * Returns the period that contains an instant. Both ends are midnights UTC, so every hour lies in
 * exactly one period.
 */
export function periodAt(rule: PeriodRule, at: number): Period {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (rule.period === 'month') return { kind: 'month', start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  const first = rule.fiscal_year_start_month - 1;
  const began = month >= first ? year : year - 1;
  return { kind: 'fiscal_year', start: Date.UTC(began, first), end: Date.UTC(began + 1, first) };
}
