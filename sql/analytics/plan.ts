// Makes a statement of an analytics query. In: a checked query and the source that can answer it.
// Out: SQL made of the catalog's expressions, and parameters. Everything that a caller wrote is a
// parameter: it never enters the text.
import { TupleParam } from '@clickhouse/client';
import { attributeConditions, type AttributeFilter, type FilterOp, type FilterValue } from '../attribute_path.ts';
import { parseTemplate, readTemplate, renderTemplate } from '../client/template.ts';
import { type Aggregate, type Agg, type Dimension, SOURCES, type View } from './catalog.ts';
import type { Granularity } from './time_zone.ts';

/** Group of everything that is not among the largest groups. */
export const OTHER = 'other';
const settings = (names: readonly string[]): string =>
  renderTemplate(
    parseTemplate(`SETTINGS ${names.map((name) => `/*include settings/${name}.sql*/`).join(', ')}`, readTemplate),
    {},
  ).sql.trim();
/** Hours and rows of months take both threads of the engine, as searches do. */
const BOTH_THREADS = settings(['cached', 'threads']);
/** Days are few rows with large digests. */
export const SHORT_TASKS = settings(['cached', 'threads', 'short_tasks']);
const attributes = parseTemplate('/*include attributes/conditions.sql*/', readTemplate);

export interface MeasureAsked {
  measure: string;
  agg: Agg;
}

/** Filter on a dimension or a number of the view. */
export interface ColumnFilter {
  field: string;
  op: FilterOp;
  values: readonly FilterValue[];
}

/** A checked query: every name is in the catalog. Times are milliseconds, `until` is exclusive. */
export interface AnalyticsQuery {
  org_id: string;
  view: View;
  measures: readonly MeasureAsked[];
  group_by: readonly string[];
  filters: readonly ColumnFilter[];
  attributes: readonly AttributeFilter[];
  granularity: Granularity | null;
  timezone: string;
  since: number;
  until: number;
}

export interface PlannedStatement {
  sql: string;
  params: Record<string, unknown>;
}

/** Group of a query: the value of each dimension in the order of group_by. */
export type Group = readonly string[];

export function aggregateOf({ view }: Pick<AnalyticsQuery, 'view'>, { measure, agg }: MeasureAsked): Aggregate {
  const found = SOURCES[view].measures[measure]?.aggs[agg];
  if (found === undefined) throw new Error(`${view} has no ${agg} of ${measure}`);
  return found;
}

export function dimensionOf({ view }: Pick<AnalyticsQuery, 'view'>, name: string): Dimension {
  const found = SOURCES[view].dimensions[name];
  if (found === undefined) throw new Error(`${view} has no dimension ${name}`);
  return found;
}

/** Returns the parts of a query that the projection p_hour cannot answer; empty when it can. */
export function beyondRollup(query: AnalyticsQuery): string[] {
  if (query.view !== 'spans') return [];
  const { numbers } = SOURCES.spans;
  return [
    ...query.measures
      .filter((one) => !aggregateOf(query, one).rollup)
      .map(({ measure, agg }) => `${agg} of ${measure}`),
    ...query.group_by.filter((name) => !dimensionOf(query, name).rollup),
    ...query.filters
      .map(({ field }) => field)
      .filter((name) => Object.hasOwn(numbers, name) || !dimensionOf(query, name).rollup),
    ...(query.attributes.length > 0 ? ['filters on attributes'] : []),
    ...(query.granularity === 'minute' ? ['the granularity minute'] : []),
  ];
}

/** Returns the statement that finds the largest groups by the first measure. Rows: {d0, d1}. */
export function planGroups(query: AnalyticsQuery, rollup: boolean, limit: number): PlannedStatement {
  const { where, params } = conditions(query, rollup);
  const dimensions = query.group_by.map((name, index) => `${dimensionOf(query, name).sql} AS d${index}`);
  const keys = query.group_by.map((_, index) => `d${index}`);
  const [first] = query.measures;
  const rank = first === undefined || first.agg === 'histogram' ? 'count()' : aggregateOf(query, first).sql;
  const others = keys.map((key) => `${key} = {other:String}`).join(' AND ');
  return {
    sql: `SELECT ${dimensions.join(', ')} FROM ${SOURCES[query.view].from} WHERE ${where} GROUP BY ${keys.join(', ')} HAVING NOT (${others}) ORDER BY ${rank} DESC, ${keys.join(', ')} LIMIT {limit:UInt32} ${BOTH_THREADS}`,
    params: { ...params, other: OTHER, limit },
  };
}

/**
 * Returns the statement for rows {t, d0, d1, m0, …} and totals. Without groups and granularity it is
 * one row.
 * @param top the groups that are shown; all others are in the group OTHER
 */
export function planRows(query: AnalyticsQuery, rollup: boolean, top: readonly Group[]): PlannedStatement {
  const { where, params } = conditions(query, rollup);
  const bucket = query.granularity === null ? null : bucketOf(query.granularity, timeOf(query, rollup));
  const groups = query.group_by.map((name) => dimensionOf(query, name).sql);
  const shown = amongGroups(groups);
  const selected = [
    ...(bucket === null ? [] : [`${bucket} AS t`]),
    ...groups.map((sql, index) => `if(${shown}, toString(${sql}), {other:String}) AS d${index}`),
    ...query.measures.map((one, index) => `${aggregateOf(query, one).sql} AS m${index}`),
  ];
  const keys = [...(bucket === null ? [] : ['t']), ...groups.map((_, index) => `d${index}`)];
  const grouped = keys.length === 0 ? '' : ` GROUP BY ${keys.join(', ')} WITH TOTALS ORDER BY ${keys.join(', ')}`;
  return {
    sql: `SELECT ${selected.join(', ')} FROM ${SOURCES[query.view].from} WHERE ${where}${grouped} ${BOTH_THREADS}`,
    params: { ...params, timezone: query.timezone, ...(groups.length === 0 ? {} : { ...topParam(top), other: OTHER }) },
  };
}

/** Returns the condition of rows whose group is shown. A search among arrays of arrays takes ten times as long. */
export function amongGroups(groups: readonly string[]): string {
  const texts = groups.map((sql) => `toString(${sql})`);
  return texts.length === 1
    ? `${texts.join('')} IN {top:Array(String)}`
    : `(${texts.join(', ')}) IN {top:Array(Tuple(${texts.map(() => 'String').join(', ')}))}`;
}

/** Returns the parameter of amongGroups. */
export const topParam = (top: readonly Group[]): Record<string, unknown> => ({
  top: top.map((group) => (group.length === 1 ? group[0] : new TupleParam(group))),
});

/**
 * Returns the statement for the values of the most extreme groups by the first measure, largest or
 * smallest first. Rows: {d0, m0, …}; without groups one row {m0, …}. Rows without a value of the
 * dimension belong to no group.
 */
export function planExtremes(query: AnalyticsQuery, order: 'largest' | 'smallest', limit: number): PlannedStatement {
  if (query.group_by.length === 0) return planTotals(query, false);
  const { where, params } = conditions(query, false);
  const dimensions = query.group_by.map((name, index) => `toString(${dimensionOf(query, name).sql}) AS d${index}`);
  const keys = query.group_by.map((_, index) => `d${index}`);
  const measures = query.measures.map((one, index) => `${aggregateOf(query, one).sql} AS m${index}`);
  const named = keys.map((key) => `${key} != ''`).join(' AND ');
  return {
    sql: `SELECT ${[...dimensions, ...measures].join(', ')} FROM ${SOURCES[query.view].from} WHERE ${where} GROUP BY ${keys.join(', ')} HAVING ${named} ORDER BY m0 ${order === 'largest' ? 'DESC' : 'ASC'}, ${keys.join(', ')} LIMIT {limit:UInt32}`,
    params: { ...params, limit },
  };
}

/** Instants at which a measure is evaluated, each over the window before it. Times are milliseconds. */
export interface Windows {
  /** First instant. */
  first: number;
  step: number;
  count: number;
  window: number;
}

/**
 * Returns the statement for the first measure over moving windows, for the most extreme groups. Rows:
 * {d0, instants, found}, where found has the value at each of the numbered instants.
 */
export function planRolling(
  query: AnalyticsQuery,
  { first, step, count, window }: Windows,
  order: 'largest' | 'smallest',
  limit: number,
): PlannedStatement {
  const [measure] = query.measures;
  if (measure === undefined) throw new Error('a measure is missing');
  const since = first - window;
  const { where, params } = conditions({ ...query, since, until: first + (count - 1) * step + 1 }, false);
  const [dimension] = query.group_by;
  const group = dimension === undefined ? "''" : `toString(${dimensionOf(query, dimension).sql})`;
  const at = `toUnixTimestamp64Milli(toDateTime64(${SOURCES[query.view].time}, 3))`;
  // A row at t counts at the instants after t and not after t + window. Numbers stay positive for intDiv.
  const from = `greatest(0, intDiv(${at} - {since_ms:Int64} + {lead_ms:Int64}, {step_ms:Int64}) + 1 - {lead:Int64})`;
  const to = `least({count:Int64}, intDiv(${at} - {since_ms:Int64}, {step_ms:Int64}) + 1)`;
  const extreme = order === 'largest' ? 'max(m0) DESC' : 'min(m0) ASC';
  const named = dimension === undefined ? '' : " AND d0 != ''";
  const inner = `SELECT arrayJoin(range(toUInt64(${from}), toUInt64(${to}))) AS k, ${group} AS d0, ${aggregateOf(query, measure).sql} AS m0 FROM ${SOURCES[query.view].from} WHERE ${where} GROUP BY k, d0`;
  // The lead makes the first quotient a whole number of steps too large, which is subtracted again.
  const lead = Math.ceil(window / step);
  return {
    sql: `SELECT d0, groupArray(toUInt32(k)) AS instants, groupArray(toFloat64(m0)) AS found FROM (${inner}) WHERE isNotNull(m0)${named} GROUP BY d0 ORDER BY ${extreme}, d0 LIMIT {limit:UInt32}`,
    params: { ...params, step_ms: step, count, lead, lead_ms: lead * step - window, limit },
  };
}

/** Returns the statement for totals alone, where rows count in several groups. One row {m0, …}. */
export function planTotals(query: AnalyticsQuery, rollup: boolean): PlannedStatement {
  return planRows({ ...query, granularity: null, group_by: [] }, rollup, []);
}

/** Returns true when rows of the view may count in several groups, so that sums of groups exceed the total. */
export const countsTwice = (query: AnalyticsQuery): boolean =>
  query.group_by.some((name) => dimensionOf(query, name).list === true);

const timeOf = ({ view }: AnalyticsQuery, rollup: boolean): string =>
  rollup ? `toStartOfHour(${SOURCES[view].time})` : SOURCES[view].time;

const BUCKETS: Readonly<Record<Granularity, (time: string) => string>> = {
  minute: (time) => `toString(toUnixTimestamp(toStartOfMinute(${time})))`,
  hour: (time) => `toString(toUnixTimestamp(toStartOfHour(${time}, {timezone:String})))`,
  day: (time) => `toString(toDate(${time}, {timezone:String}))`,
  week: (time) => `toString(toMonday(${time}, {timezone:String}))`,
  month: (time) => `toString(toStartOfMonth(${time}, {timezone:String}))`,
};
const DATE_BUCKETS: Readonly<Partial<Record<Granularity, (day: string) => string>>> = {
  day: (day) => `toString(${day})`,
  week: (day) => `toString(toMonday(${day}))`,
  month: (day) => `toString(toStartOfMonth(${day}))`,
};

/** Returns the bucket of a date in UTC; undefined for buckets shorter than a day. */
export const dateBucketOf = (granularity: Granularity, day: string): string | undefined =>
  DATE_BUCKETS[granularity]?.(day);

function bucketOf(granularity: Granularity, time: string): string {
  return (time === 'day' ? dateBucketOf(granularity, time) : undefined) ?? BUCKETS[granularity](time);
}

interface Conditions {
  found: string[];
  params: Record<string, unknown>;
}

function conditions(query: AnalyticsQuery, rollup: boolean): { where: string; params: Record<string, unknown> } {
  const rows = rowConditions(query, rollup);
  const filters = filterConditions(query);
  return { where: [...rows.found, ...filters.found].join(' AND '), params: { ...rows.params, ...filters.params } };
}

/** Returns the conditions on the organization and the time of a query. */
export function rowConditions(query: AnalyticsQuery, rollup: boolean): Conditions {
  const source = SOURCES[query.view];
  const time = timeOf(query, rollup);
  const found: string[] = ['org_id = {org_id:String}'];
  if (time === 'day')
    found.push(
      "day >= toDate(fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')) AND day < toDate(fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC'))",
    );
  else
    found.push(
      `${time} >= fromUnixTimestamp64Milli({since_ms:Int64}, 'UTC')`,
      `${time} < fromUnixTimestamp64Milli({until_ms:Int64}, 'UTC')`,
    );
  if (source.where !== '') found.push(source.where);
  return { found, params: { org_id: query.org_id, since_ms: query.since, until_ms: query.until } };
}

/** Returns the conditions of the filters of a query. */
export function filterConditions({ view, filters, attributes: paths }: AnalyticsQuery): Conditions {
  const params: Record<string, unknown> = {};
  const found = filters.map((filter, index) => conditionOf(view, filter, `f${index}`, params));
  if (paths.length > 0) {
    const rendered = renderTemplate(attributes, { attributes: attributeConditions(paths) });
    found.push(rendered.sql);
    Object.assign(params, rendered.params);
  }
  return { found, params };
}

const COMPARISONS: Readonly<Partial<Record<FilterOp, string>>> = { gt: '>', gte: '>=', lt: '<', lte: '<=' };

function conditionOf(
  view: View,
  { field, op, values }: ColumnFilter,
  name: string,
  params: Record<string, unknown>,
): string {
  const number = SOURCES[view].numbers[field];
  if (op === 'exists') {
    const present = number === undefined ? presentOf(dimensionOf({ view }, field)) : `${number} != 0`;
    return values[0] === false ? `NOT (${present})` : present;
  }
  params[name] = op === 'in' || op === 'not_in' || op === 'eq' || op === 'ne' ? values : values[0];
  const comparison = COMPARISONS[op];
  if (comparison !== undefined) return `${number ?? ''} ${comparison} {${name}:Float64}`;
  const among =
    number === undefined
      ? amongOf(dimensionOf({ view }, field), `{${name}:Array(String)}`)
      : `has({${name}:Array(Float64)}, ${number})`;
  return op === 'ne' || op === 'not_in' ? `NOT (${among})` : among;
}

const presentOf = ({ sql, list }: Dimension): string => (list === true ? 'notEmpty(tags)' : `${sql} != ''`);
const amongOf = ({ sql, list }: Dimension, values: string): string =>
  list === true ? `hasAny(tags, ${values})` : `${sql} IN ${values}`;
