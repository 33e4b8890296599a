// The charts of a forecast: known days, the line of the days to come, and its band. Pure.
import type { ChartContent, ChartLimit } from '../../charts/chart_shape.ts';
import { amount, type CostForecast, type ResourceForecast } from './forecast_words.ts';
import { dayTicks } from './cost_days.ts';

const BAND = '95 % interval';

/**
 * Returns the cost of each known day as a bar and the forecast as a line with its band.
 * @param dates known days, the last one is today, which is not over
 * @param from first known day that is shown
 */
export function costContent(
  { dates, costs }: { dates: readonly string[]; costs: readonly number[] },
  { series, days_of_data }: CostForecast,
): ChartContent {
  const from = Math.max(0, dates.length - 1 - Math.max(1, days_of_data));
  const known = dates.slice(from);
  const points = [...known, ...series.map(({ date }) => date).filter((date) => !known.includes(date))];
  const byDate = new Map(series.map((day) => [day.date, day]));
  return {
    points,
    ticks: dayTicks(points),
    series: [
      {
        id: 'known',
        label: 'Cost',
        values: points.map((_, at) => (at < known.length ? (costs[from + at] ?? 0) : null)),
        colour: 'series-1',
        form: 'bar',
      },
      {
        id: 'forecast',
        label: 'Forecast',
        values: points.map((date) => byDate.get(date)?.predicted_usd ?? null),
        colour: 'series-2',
        form: 'line',
        dashed: true,
      },
    ],
    bands: [
      {
        label: BAND,
        low: points.map((date) => byDate.get(date)?.lower_ci ?? null),
        high: points.map((date) => byDate.get(date)?.upper_ci ?? null),
        colour: 'series-2',
      },
    ],
  };
}

/** Returns the use since the start of the period, known and expected, with the limits as lines. */
export function useContent(forecast: ResourceForecast): ChartContent {
  const { resource, by_day, series, hard_limit, soft_limit } = forecast;
  const points = [...new Set([...by_day, ...series].map(({ date }) => date))];
  const known = new Map(by_day.map(({ date, used }) => [date, used]));
  const ahead = new Map(series.map((day) => [day.date, day]));
  const limits: ChartLimit[] = [
    ...(hard_limit === null
      ? []
      : [{ value: hard_limit, label: `Hard limit ${amount(resource, hard_limit)}`, colour: 'error' as const }]),
    ...(soft_limit === null
      ? []
      : [{ value: soft_limit, label: `Soft limit ${amount(resource, soft_limit)}`, colour: 'warn' as const }]),
  ];
  return {
    points,
    ticks: dayTicks(points),
    series: [
      {
        id: 'known',
        label: 'Use',
        values: points.map((date) => known.get(date) ?? null),
        colour: 'series-1',
        form: 'line',
      },
      {
        id: 'forecast',
        label: 'Forecast',
        values: points.map((date) => ahead.get(date)?.predicted ?? null),
        colour: 'series-2',
        form: 'line',
        dashed: true,
      },
    ],
    bands: [
      {
        label: BAND,
        low: points.map((date) => ahead.get(date)?.lower_ci ?? null),
        high: points.map((date) => ahead.get(date)?.upper_ci ?? null),
        colour: 'series-2',
      },
    ],
    limits,
  };
}
