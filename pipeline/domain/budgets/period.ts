// The period that a budget counts in: a calendar month or a fiscal year, in UTC. Pure.

export type PeriodKind = 'month' | 'fiscal_year';

export interface PeriodRule {
  period: PeriodKind;
  /** 1 to 12; the month in which a fiscal year begins. */
  fiscal_year_start_month: number;
}

export interface Period {
  kind: PeriodKind;
  /** First instant of it, milliseconds since the epoch. */
  start: number;
  /** First instant after it. */
  end: number;
}

export const MONTHLY: PeriodRule = Object.freeze({ period: 'month', fiscal_year_start_month: 1 });

/** The period that holds an instant. Both ends are midnights UTC, so an hour of the day lies in exactly one period. */
export function periodAt(rule: PeriodRule, at: number): Period {
  const date = new Date(at);
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()];
  if (rule.period === 'month') return { kind: 'month', start: Date.UTC(year, month), end: Date.UTC(year, month + 1) };
  const first = rule.fiscal_year_start_month - 1;
  const began = month >= first ? year : year - 1;
  return { kind: 'fiscal_year', start: Date.UTC(began, first), end: Date.UTC(began + 1, first) };
}
