// Puts a forecast into sentences. Pure: dates and numbers are those of the API.
import type { components } from '../../client/contract.d.ts';
import { count, money, NONE, percent, tokens } from '../../text/format.ts';
import { dayWords, type Resource, WORDS } from './amounts.ts';

export type CostForecast = components['schemas']['Forecast'];
export type BudgetForecast = components['schemas']['BudgetForecast'];
export type ResourceForecast = BudgetForecast['resources'][number];
type Reached = ResourceForecast['hard_limit_reached'];

/** Days that a forecast of costs looks ahead. */
export const AHEAD_DAYS = 30;
const DAY_MS = 86_400_000;

/** Fewer days than this show no trend, as the API says. */
const TREND_DAYS_MIN = 14;

/** Returns an amount of a resource with its unit. */
export function amount(resource: Resource, value: number | null): string {
  if (value === null) return NONE;
  return resource === 'tokens' ? tokens(value) : WORDS[resource].short(value);
}

/** Returns how the estimate was made and from how many days. */
export function fitWords({
  days_of_data: days,
  mean_fallback,
  r_squared,
}: Pick<ResourceForecast, 'days_of_data' | 'mean_fallback' | 'r_squared'>): string {
  const from = `${count(days)} whole ${days === 1 ? 'day' : 'days'} of data`;
  if (days === 0) return `The forecast begins after the first whole day of data. There is none yet.`;
  if (days < TREND_DAYS_MIN)
    return `The forecast is the mean of the ${from} that there are. A trend needs at least ${TREND_DAYS_MIN} days.`;
  if (mean_fallback) return `The forecast is the mean of ${from}, because they do not vary.`;
  return `The forecast is a line through ${from}, which explains ${percent(r_squared)} of their variance (r² ${(r_squared ?? 0).toFixed(2)}).`;
}

/** Returns the last day of a budget period. */
export const lastDayOf = ({ period_end }: Pick<BudgetForecast, 'period_end'>): string =>
  new Date(Date.parse(period_end) - DAY_MS).toISOString().slice(0, 10);

/** Returns the resources with a limit, each with the dates of today and of the end of the period. */
export function limitsOf(forecast: BudgetForecast): { forecast: ResourceForecast; today: string; end: string }[] {
  const end = lastDayOf(forecast);
  return forecast.resources
    .filter(({ hard_limit, soft_limit }) => hard_limit !== null || soft_limit !== null)
    .map((one) => ({ forecast: one, today: one.series[0]?.date ?? end, end }));
}

/** Returns what the coming days are expected to cost together. */
export function costWords({ series }: Pick<CostForecast, 'series'>): string {
  const [first] = series;
  const last = series.at(-1);
  if (first === undefined || last === undefined) return '';
  const sum = series.reduce((all, { predicted_usd }) => all + predicted_usd, 0);
  return `The next ${count(series.length)} days, today included, are expected to cost ${money(sum)}: ${money(first.predicted_usd)} today, ${money(last.predicted_usd)} on ${dayWords(last.date)} (${money(last.lower_ci)} to ${money(last.upper_ci)} with 95 % probability).`;
}

/**
 * Returns when use reaches a limit.
 * @param today date of today (UTC)
 * @param end last day of the period
 */
export function reachWords(limit: string, reached: NonNullable<Reached>, today: string, end: string): string {
  const { expected, earliest } = reached;
  if (expected !== null && expected < today) return `reached the ${limit} on ${dayWords(expected)}`;
  const upper = earliest === null ? '' : ` (${dayWords(earliest)} at the upper end)`;
  if (expected === null)
    return earliest === null
      ? `stays below the ${limit} to the end of the period on ${dayWords(end)}`
      : `stays below the ${limit} to the end of the period on ${dayWords(end)}, but reaches it on ${dayWords(earliest)} at the upper end`;
  return `reaches the ${limit} on ${dayWords(expected)}${earliest === expected ? '' : upper}`;
}

/** Returns when use of a resource reaches its limits, as one sentence. */
export function limitWords(forecast: ResourceForecast, today: string, end: string): string {
  const { resource, hard_limit, soft_limit, hard_limit_reached, soft_limit_reached } = forecast;
  const name = WORDS[resource].name;
  const parts = [
    ...(hard_limit_reached === null
      ? []
      : [reachWords(`hard limit of ${amount(resource, hard_limit)}`, hard_limit_reached, today, end)]),
    ...(soft_limit_reached === null
      ? []
      : [reachWords(`soft limit of ${amount(resource, soft_limit)}`, soft_limit_reached, today, end)]),
  ];
  const last = forecast.series.at(-1);
  const expected = `expected to be ${amount(resource, last?.predicted ?? null)} at the end of the period on ${dayWords(end)}`;
  if (parts.length === 0) return `${name}: ${amount(resource, forecast.used)} so far, ${expected}. No limit is set.`;
  return `${name}: ${parts.join('; ')}.`;
}
