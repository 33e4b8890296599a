// Forecasts the use of each resource to the end of the budget period and names the days on which it
// reaches its limits. Reads the use of each day of receipt; the line is fitted when the forecast is
// read, by the same rule as the job that publishes cost.forecast_breach.
import { addUsed, amountOf, nothingUsed, type Used } from '../../../pipeline/domain/budgets/budget.ts';
import { periodAt } from '../../../pipeline/domain/budgets/period.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { projectDays, trainForecast, TRAINING_DAYS } from '../../../pipeline/domain/stats/forecast.ts';
import { dateOf, dayOf } from '../../../pipeline/domain/time/days.ts';
import { type BudgetRecord, type ResourceName, RESOURCES, unlimited } from '../../../schemas/records/budget.ts';
import { readDailyUse, readFirstUse } from '../../../sql/stores/costs.ts';
import type { PreviewDeps } from './preview.ts';
import type { BudgetForecast } from './schema.ts';
import type { BudgetStore } from './store.ts';

export interface BudgetForecastDeps extends PreviewDeps {
  budgets: BudgetStore;
}

type ResourceForecast = BudgetForecast['resources'][number];

/** Days of a forecast, as whole days since 1970-01-01 (UTC). */
interface Days {
  today: number;
  /** First day of the period, and the day after its last one. */
  first: number;
  end: number;
  /** First day that the line is fitted to. */
  from: number;
}

/** Returns the use of each resource on each day of the period, known or expected. */
export async function forecastBudget(
  { clickhouse, now, ruleOf, budgets }: BudgetForecastDeps,
  org_id: string,
  signal: AbortSignal,
): Promise<BudgetForecast> {
  const at = now();
  const period = periodAt(ruleOf(org_id), at);
  const [today, first, end] = [dayOf(at), dayOf(period.start), dayOf(period.end)];
  const earliest = today - TRAINING_DAYS;
  const [rows, [known]] = await Promise.all([
    readDailyUse(clickhouse, { org_id, from: Math.min(earliest, first), until: today + 1 }, { signal }),
    readFirstUse(clickhouse, { org_id }, { signal }),
  ]);
  const byDay = new Map(
    rows.map(({ cost_usd, ...row }) => [row.on_day, { ...row, cost_pico_usd: usdToPico(cost_usd) }]),
  );
  const days = { today, first, end, from: Math.max(earliest, known?.first_day ?? today) };
  const record = budgets.get(org_id) ?? unlimited(org_id);
  return {
    period_start: new Date(period.start).toISOString(),
    period_end: new Date(period.end).toISOString(),
    resources: RESOURCES.map((resource) => {
      return forecastOf(resource, record, days, (day) => byDay.get(day) ?? nothingUsed());
    }),
  };
}

function forecastOf(
  resource: ResourceName,
  record: BudgetRecord,
  { today, first, end, from }: Days,
  usedOn: (day: number) => Used,
): ResourceForecast {
  const { soft_limit, hard_limit } = record[resource];
  const on = (day: number): number => amountOf(usedOn(day), resource);
  const trained = trainForecast(range(from, today).map(on));
  const sum = nothingUsed();
  const by_day = range(first, today + 1).map((day) => {
    addUsed(sum, usedOn(day));
    return { date: dateOf(day), used: amountOf(sum, resource) };
  });
  const used = amountOf(sum, resource);
  const series = projectDays(trained, { used, usedToday: on(today), daysLeft: end - today }).map(
    ({ value, lower, upper }, ahead) => ({
      date: dateOf(today + ahead),
      predicted: value,
      lower_ci: lower,
      upper_ci: upper,
    }),
  );
  return {
    resource,
    used,
    soft_limit,
    hard_limit,
    by_day,
    series,
    soft_limit_reached: reachedOn(soft_limit, by_day, series),
    hard_limit_reached: reachedOn(hard_limit, by_day, series),
    r_squared: trained.r_squared,
    mean_fallback: trained.mean_fallback,
    days_of_data: trained.days,
  };
}

const range = (from: number, until: number): number[] =>
  Array.from({ length: Math.max(0, until - from) }, (_, index) => from + index);

/** Returns the days on which use reaches a limit: as expected, and at the upper end of the interval. */
function reachedOn(
  limit: number | null,
  by_day: ResourceForecast['by_day'],
  series: ResourceForecast['series'],
): ResourceForecast['hard_limit_reached'] {
  if (limit === null) return null;
  const reached = by_day.find(({ used }) => used >= limit)?.date;
  return {
    expected: reached ?? series.find(({ predicted }) => predicted >= limit)?.date ?? null,
    earliest: reached ?? series.find(({ upper_ci }) => upper_ci >= limit)?.date ?? null,
  };
}
