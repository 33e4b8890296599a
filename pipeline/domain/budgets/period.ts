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
