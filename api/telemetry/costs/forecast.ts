// Forecasts the cost of the coming days. The line is fitted when the forecast is read, over the
// whole days before today, so a forecast is never older than the data.
import { dateOf, dayOf, zeroFilled } from '../../../pipeline/domain/time/days.ts';
import { trainForecast, TRAINING_DAYS } from '../../../pipeline/domain/stats/forecast.ts';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { readCostDays, readFirstDay } from '../../../sql/stores/costs.ts';
import type { CostDeps } from './costs.ts';
import type { ForecastAnswer } from './schema.ts';

export async function readForecast(
  { clickhouse, now }: Pick<CostDeps, 'clickhouse' | 'now'>,
  org_id: string,
  days: number,
  signal: AbortSignal,
): Promise<ForecastAnswer> {
  const today = dayOf(now());
  const from = today - TRAINING_DAYS;
  const [rows, [first]] = await Promise.all([
    readCostDays(clickhouse, { org_id, from, until: today }, { signal }),
    readFirstDay(clickhouse, { org_id }, { signal }),
  ]);
  const totals = new Map(rows.map(({ on_day, cost_usd }) => [on_day, usdToPico(cost_usd)]));
  const history = zeroFilled(totals, Math.max(from, first?.first_day ?? today), today).map(picoToUsd);
  const trained = trainForecast(history);
  return {
    horizon_days: days,
    series: Array.from({ length: days }, (_, ahead) => {
      const { value, lower, upper } = trained.at(ahead);
      return { date: dateOf(today + ahead), predicted_usd: value, lower_ci: lower, upper_ci: upper };
    }),
    model: { type: 'ols', r_squared: trained.r_squared },
    mean_fallback: trained.mean_fallback,
    days_of_data: trained.days,
  };
}
