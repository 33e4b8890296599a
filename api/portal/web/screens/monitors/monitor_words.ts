// Monitors in words: what one measures, when it alerts, and how its values are written. Pure.
import { count, duration, exact, money, percent, tokens } from '../../text/format.ts';
import type { AnalyticsView, Monitor } from './draft.ts';

type Format = (value: number | null) => string;
const FORMATS: Readonly<Record<string, Format>> = {
  count: (value) => (Number.isInteger(value) ? count(value) : rounded(value)),
  share: percent,
  usd: money,
  tokens,
  ms: duration,
};
const UNITS: Readonly<Record<string, string>> = {
  share: 'a share from 0 to 1',
  usd: 'US dollars',
  tokens: 'tokens',
  ms: 'milliseconds',
  tokens_per_second: 'tokens a second',
};
const AGGS: Readonly<Record<string, string>> = {
  sum: 'Sum',
  avg: 'Mean',
  min: 'Minimum',
  max: 'Maximum',
  uniq: 'Number of different values',
};

/** Comparisons of filters by their names in the API. */
export const OPS_WORDS: Readonly<Record<string, string>> = {
  eq: 'is',
  ne: 'is not',
  in: 'is one of',
  not_in: 'is none of',
  gt: 'is above',
  gte: 'is at least',
  lt: 'is below',
  lte: 'is at most',
  exists: 'exists',
};

function rounded(value: number | null): string {
  return exact(value === null ? null : Number(value.toPrecision(4)));
}

/** Returns how values of a measure are written. */
export function formatOf(views: readonly AnalyticsView[], view: string, measure: string): Format {
  return FORMATS[unitOf(views, view, measure)] ?? rounded;
}

function unitOf(views: readonly AnalyticsView[], view: string, measure: string): string {
  const found = views.find(({ name }) => name === view)?.measures.find(({ name }) => name === measure);
  return found?.unit ?? '';
}

/** Returns the unit in which a threshold is typed; empty for plain numbers. */
export const unitWords = (views: readonly AnalyticsView[], view: string, measure: string): string =>
  UNITS[unitOf(views, view, measure)] ?? '';

/** Returns an aggregation as a choice: Mean, 95th percentile. */
export const aggWords = (agg: string): string =>
  AGGS[agg] ?? (/^p\d\d$/.test(agg) ? `${agg.slice(1)}th percentile` : agg);

/** Returns a name of the API as words: error_rate is "error rate". */
export const plain = (name: string): string => name.replaceAll('_', ' ');

/** Returns what a monitor measures: "Mean of error rate by model". */
export function measureWords({ query, group_by }: Pick<Monitor, 'query' | 'group_by'>): string {
  const [measure] = query.measures;
  const [dimension] = group_by;
  const by = dimension === undefined ? '' : ` by ${plain(dimension)}`;
  return `${aggWords(measure?.agg ?? '')} of ${plain(measure?.measure ?? '')}${by}`;
}

/** Returns when a monitor alerts: "above 8 s over 15 minutes". */
export function thresholdWords(
  { threshold, window_minutes }: Pick<Monitor, 'threshold' | 'window_minutes'>,
  format: Format,
): string {
  const limit = 'above' in threshold ? `above ${format(threshold.above)}` : `below ${format(threshold.below)}`;
  return `${limit} over ${minutesWords(window_minutes)}`;
}

export const minutesWords = (minutes: number): string => (minutes === 1 ? '1 minute' : `${count(minutes)} minutes`);

/** Returns a group by its value; monitors without groups have one, which is everything. */
export const groupWords = (group: Readonly<Record<string, string>>): string => Object.values(group)[0] ?? 'All';
