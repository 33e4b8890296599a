// The groups of a cost series as rows of the table and as parts of the stack. Pure: all amounts are
// those of the API; the part `other` of the stack adds those that the table lists by themselves.
import type { ChartSeries } from '../../charts/chart_shape.ts';
import type { ColourToken } from '../../charts/colours.ts';
import type { components } from '../../client/contract.d.ts';
import { escapedValue } from '../../lists/list_url.ts';
import { daysHref } from './cost_days.ts';
import type { Dimension } from './costs_url.ts';

export type CostSeries = components['schemas']['CostSeries'];

/** Parts of the stack beside `other`. */
const PARTS_MAX = 8;
export const OTHER = 'other';

export interface CostRow {
  /** Key of the row: the value with a sign before it, or OTHER. */
  id: string;
  label: string;
  /** Value of the dimension; null for costs without one, undefined for all further groups together. */
  value: string | null | undefined;
  cost_usd: number;
  previous_cost_usd: number;
  tokens: number;
  days: readonly number[];
}

export const DIMENSION_WORDS: Readonly<Record<Dimension, string>> = {
  model: 'Model',
  agent_id: 'Agent',
  department: 'Department',
  realm: 'Realm',
};

/** Returns the groups, costliest first, and all further ones together where they cost anything. */
export function rowsOf(series: CostSeries, by: Dimension): CostRow[] {
  const groups = series.groups.map((sums): CostRow => {
    const value = sums.group[by] ?? null;
    const label = value ?? `No ${DIMENSION_WORDS[by].toLowerCase()}`;
    return { id: value === null ? '-' : `=${value}`, label, value, ...amounts(sums) };
  });
  const { other } = series;
  if (other.cost_usd === 0 && other.tokens === 0 && other.previous_cost_usd === 0) return groups;
  return [...groups, { id: OTHER, label: 'All other', value: undefined, ...amounts(other) }];
}

const amounts = ({ cost_usd, previous_cost_usd, tokens, by_day }: CostSeries['total']) => ({
  cost_usd,
  previous_cost_usd,
  tokens,
  days: by_day.cost_usd,
});

/** Returns the parts of the stack from the baseline up: the costliest groups, then all other costs. */
export function partsOf(rows: readonly CostRow[], colours: readonly ColourToken[]): ChartSeries[] {
  const named = rows.filter(({ id }) => id !== OTHER);
  const shown = named.slice(0, PARTS_MAX).map(({ id, label, days }, at): ChartSeries => ({
    id,
    label,
    values: days,
    colour: colours[at] ?? 'series-other',
    form: 'bar',
  }));
  const rest = [...named.slice(PARTS_MAX), ...rows.filter(({ id }) => id === OTHER)];
  if (rest.length === 0) return shown;
  const [first] = rest;
  const values = (first?.days ?? []).map((_, day) => rest.reduce((sum, { days }) => sum + (days[day] ?? 0), 0));
  return [...shown, { id: OTHER, label: 'All other', values, colour: 'series-other', form: 'bar' }];
}

/**
 * Returns the list of the traces behind a group.
 * @param from first day, as the API writes it
 * @param to last day
 */
export function tracesHref(traces: string, by: Dimension, row: CostRow | null, from: string, to: string): string {
  const value = row?.value;
  return daysHref(traces, from, to, typeof value === 'string' ? { [by]: escapedValue(value) } : {});
}

/** Returns the sum, the number of days and the day of the largest cost in words. */
export function costSummary({ total, dates }: CostSeries, money: (usd: number) => string): string {
  const days = total.by_day.cost_usd;
  const most = Math.max(0, ...days);
  const words = `${money(total.cost_usd)} in ${dates.length} days`;
  return most === 0 ? `${words}.` : `${words}, at most ${money(most)} on ${dates[days.indexOf(most)] ?? ''}.`;
}
