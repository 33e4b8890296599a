// Computes when a hard limit would have been reached in the current period and in the two before
// it. Takes a limit; reads the use of each day of receipt and changes nothing.
import { reachOf } from '../../../pipeline/domain/budgets/budget.ts';
import { type Period, periodAt, type PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { readDailyUse } from '../../../sql/stores/costs.ts';
import type { BudgetPreview, PreviewQuery } from './schema.ts';

/** Periods of an answer: the current one and the two before it. */
const PERIODS = 3;

export interface PreviewDeps {
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Returns how the organization's budgets are divided into periods. */
  ruleOf: (org_id: string) => PeriodRule;
}

/** Returns the periods in which a hard limit would have been reached, the current one first. */
export async function previewBudget(
  { clickhouse, now, ruleOf }: PreviewDeps,
  org_id: string,
  { resource, hard_limit, agent_id }: PreviewQuery,
  signal: AbortSignal,
): Promise<BudgetPreview> {
  const periods = lastPeriods(ruleOf(org_id), now());
  const from = dayOf(Math.min(...periods.map(({ start }) => start)));
  const asked = { org_id, from, until: dayOf(now()) + 1 };
  const rows = await readDailyUse(clickhouse, agent_id === undefined ? asked : { ...asked, by_agent: true, agent_id }, {
    signal,
  });
  const days = rows
    .map(({ cost_usd, ...row }) => ({ ...row, cost_pico_usd: usdToPico(cost_usd) }))
    .sort((a, b) => a.on_day - b.on_day);
  return {
    resource,
    hard_limit,
    agent_id: agent_id ?? null,
    periods: periods.map(({ start, end }) => {
      const within = days.filter(({ on_day }) => on_day >= dayOf(start) && on_day < dayOf(end));
      const { used, beyond, at } = reachOf(within, resource, hard_limit);
      // A limit of 0 is reached before any use.
      const reached = hard_limit === 0 ? dayOf(start) : within[at]?.on_day;
      return {
        period_start: new Date(start).toISOString(),
        period_end: new Date(end).toISOString(),
        used,
        reached_on: reached === undefined ? null : dateOf(reached),
        beyond_limit: beyond,
      };
    }),
  };
}

function lastPeriods(rule: PeriodRule, now: number): Period[] {
  const periods: Period[] = [];
  for (let at = now; periods.length < PERIODS;) {
    const period = periodAt(rule, at);
    periods.push(period);
    at = period.start - 1;
  }
  return periods;
}
