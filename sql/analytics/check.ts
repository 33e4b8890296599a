// Turns an analytics query, as a client wrote it, into a checked query of the planner. The API checks
// queries and monitors with it, and the worker checks a monitor again before it evaluates it. Names that
// the view does not have, operators that a field does not take, and queries beyond the bounds are
// refused; the message names the bound and the nearest query that passes.
import { type AnalyticsQuery, aggregateOf, beyondRollup, type ColumnFilter, type MeasureAsked } from './plan.ts';
import { type Agg, type Source, SOURCES, type View } from './catalog.ts';
import { type Bucket, DAY_MS, type Granularity, HOUR_MS, TimeZone } from './time_zone.ts';
import {
  ATTRIBUTE_PREFIX,
  type AttributeFilter,
  type FilterOp,
  type FilterValue,
  parseAttributePath,
} from '../attribute_path.ts';

/** A query as a client wrote it. Its shape is checked already, its names are not. Times are milliseconds. */
export interface AnalyticsAsked {
  view: View;
  measures: readonly { measure: string; agg?: Agg | undefined; as?: string | undefined }[];
  group_by: readonly string[];
  filters: readonly { field: string; op: FilterOp; value: FilterValue | FilterValue[] }[];
  granularity?: Granularity | 'auto' | undefined;
  timezone: string;
  since: number;
  until?: number | undefined;
  /** Number of groups that are shown. */
  top: number;
}

/** An analytics query that cannot be answered. The message names the field and the accepted values. */
export class AnalyticsRefused extends Error {}

/** Longest time for buckets of a length. Weeks and months have the bound of all queries. */
const RANGE_MS_MAX: Readonly<Partial<Record<Granularity, number>>> = {
  minute: DAY_MS,
  hour: 31 * DAY_MS,
  day: 400 * DAY_MS,
};
const ANY_RANGE_MS_MAX = 1830 * DAY_MS;
/** Longest time of queries that read spans, traces or scores instead of hours. */
const ROWS_RANGE_MS_MAX = 31 * DAY_MS;
const CELLS_MAX = 10_000;
/** Longest time for which `auto` chooses a length; months beyond. */
const AUTO: readonly (readonly [number, Granularity])[] = [
  [2 * HOUR_MS, 'minute'],
  [3 * DAY_MS, 'hour'],
  [92 * DAY_MS, 'day'],
  [400 * DAY_MS, 'week'],
];

export const BOUNDS: Readonly<Record<string, number>> = {
  minute_hours: DAY_MS / HOUR_MS,
  hour_days: 31,
  day_days: 400,
  rows_days: ROWS_RANGE_MS_MAX / DAY_MS,
  days: ANY_RANGE_MS_MAX / DAY_MS,
  cells: CELLS_MAX,
};

export interface NamedMeasure extends MeasureAsked {
  as: string;
}

export interface CheckedQuery {
  query: AnalyticsQuery;
  measures: NamedMeasure[];
  /** Buckets of the time; empty without granularity. */
  buckets: Bucket[];
  source: 'usage' | 'rollup' | 'rows';
}

const refuse = (field: string, text: string): AnalyticsRefused => new AnalyticsRefused(`${field}: ${text}`);
const iso = (ms: number): string => new Date(ms).toISOString();

/** @throws AnalyticsRefused naming the field */
export function checkedQuery(org_id: string, body: AnalyticsAsked, now: number): CheckedQuery {
  const { view, since, group_by } = body;
  const source = SOURCES[view];
  const unit = view === 'usage' ? DAY_MS : HOUR_MS;
  const until = body.until ?? Math.floor(now / unit) * unit + unit;
  const measures = measuresOf(source, body);
  for (const [index, name] of group_by.entries())
    if (!Object.hasOwn(source.dimensions, name))
      throw refuse(`group_by[${index}]`, choices(Object.keys(source.dimensions), view));
  if (new Set(group_by).size < group_by.length) throw refuse('group_by', 'must name each dimension once');
  if (until <= since) throw refuse('until', `must be after since, which is ${iso(since)}`);
  const granularity = granularityOf(body, until - since);
  const { filters, attributes } = filtersOf(source, body);
  const query: AnalyticsQuery = {
    org_id,
    view,
    measures,
    group_by,
    filters,
    attributes,
    granularity,
    timezone: body.timezone,
    since,
    until,
  };
  checkRange(query);
  if (view === 'usage') checkDays(query);
  const zone = new TimeZone(body.timezone);
  const buckets = granularity === null ? [] : zone.buckets(granularity, since, until, CELLS_MAX);
  checkCells(query, body.top, buckets.length);
  return { query, measures, buckets, source: sourceOf(query, buckets) };
}

const choices = (names: readonly string[], view: string): string =>
  `must be one of ${names.join(', ')} in the view ${view}`;

function measuresOf({ measures: known }: Source, { view, measures }: AnalyticsAsked): NamedMeasure[] {
  const named = measures.map(({ measure, agg, as }, index) => {
    const found = Object.hasOwn(known, measure) ? known[measure] : undefined;
    if (found === undefined) throw refuse(`measures[${index}].measure`, choices(Object.keys(known), view));
    const aggs = Object.keys(found.aggs) as Agg[];
    const chosen = agg ?? aggs[0];
    if (chosen === undefined || !aggs.includes(chosen))
      throw refuse(`measures[${index}].agg`, `must be one of ${aggs.join(', ')} for ${measure}`);
    return { measure, agg: chosen, as: as ?? `${measure}_${chosen}` };
  });
  const names = named.map(({ as }) => as);
  const twice = names.findIndex((name, index) => names.indexOf(name) < index);
  if (twice >= 0) throw refuse(`measures[${twice}].as`, 'must differ from the names of the other columns');
  return named;
}

/** Operators of a dimension; numbers take all. */
const TEXT_OPS: readonly FilterOp[] = ['eq', 'ne', 'in', 'not_in', 'exists'];

function filtersOf(source: Source, { view, filters }: AnalyticsAsked) {
  const columns: ColumnFilter[] = [];
  const attributes: AttributeFilter[] = [];
  for (const [index, { field, op, value }] of filters.entries()) {
    const at = `filters[${index}]`;
    const values = valuesOf(at, op, value);
    if (source.attributes && field.startsWith(ATTRIBUTE_PREFIX)) {
      const parsed = parseAttributePath(field);
      if (!parsed.ok) throw refuse(`${at}.field`, parsed.message);
      attributes.push({ path: parsed.path, op, values });
      continue;
    }
    const isNumber = Object.hasOwn(source.numbers, field);
    if (!isNumber && !Object.hasOwn(source.dimensions, field)) {
      const names = [...Object.keys(source.dimensions), ...Object.keys(source.numbers)];
      throw refuse(`${at}.field`, choices([...names, ...(source.attributes ? ['attributes.<path>'] : [])], view));
    }
    if (!isNumber && !TEXT_OPS.includes(op))
      throw refuse(`${at}.op`, `must be one of ${TEXT_OPS.join(', ')} for ${field}`);
    const type = isNumber ? 'number' : 'string';
    // `typeof` tells which value a field takes; `exists` takes a boolean whatever the field.
    if (op !== 'exists' && values.some((one) => typeof one !== type))
      throw refuse(`${at}.value`, `must be a ${isNumber ? 'number' : 'text'} for ${field}`);
    columns.push({ field, op, values });
  }
  return { filters: columns, attributes };
}

function valuesOf(at: string, op: FilterOp, value: FilterValue | FilterValue[]): FilterValue[] {
  const isList = op === 'in' || op === 'not_in';
  if (Array.isArray(value) !== isList)
    throw refuse(`${at}.value`, isList ? `must be a list with ${op}` : `must be one value with ${op}`);
  const values = Array.isArray(value) ? value : [value];
  if (op === 'exists' && typeof values[0] !== 'boolean')
    throw refuse(`${at}.value`, 'must be true or false with exists');
  return values;
}

function granularityOf({ granularity }: AnalyticsAsked, range: number): Granularity | null {
  if (granularity === undefined) return null;
  return granularity === 'auto' ? (AUTO.find(([max]) => range <= max)?.[1] ?? 'month') : granularity;
}

function checkRange({ granularity, since, until }: AnalyticsQuery): void {
  const range = until - since;
  const max = (granularity === null ? undefined : RANGE_MS_MAX[granularity]) ?? ANY_RANGE_MS_MAX;
  if (range <= max) return;
  const span = max >= 2 * DAY_MS ? `${max / DAY_MS} days` : `${max / HOUR_MS} hours`;
  const coarser = granularity === 'minute' ? 'hour' : granularity === 'hour' ? 'day' : 'week';
  const alternative = max === ANY_RANGE_MS_MAX ? '' : `, or granularity ${coarser}`;
  throw refuse(
    'since',
    `${granularity === null ? 'a query' : `granularity ${granularity}`} covers at most ${span}. The nearest query that passes has since ${iso(until - max)}${alternative}`,
  );
}

/** Use is stored by day in UTC. */
function checkDays({ granularity, timezone, since, until }: AnalyticsQuery): void {
  if (granularity === 'minute' || granularity === 'hour')
    throw refuse('granularity', 'must be day, week or month in the view usage');
  if (timezone !== 'UTC') throw refuse('timezone', 'must be UTC in the view usage, which counts days in UTC');
  for (const [field, at] of [
    ['since', since],
    ['until', until],
  ] as const)
    if (at % DAY_MS !== 0)
      throw refuse(
        field,
        `must be the start of a day in UTC in the view usage. The nearest query that passes has ${field} ${iso(Math.round(at / DAY_MS) * DAY_MS)}`,
      );
}

function checkCells({ measures, group_by, granularity }: AnalyticsQuery, top: number, buckets: number): void {
  const groups = group_by.length === 0 ? 1 : top + 1;
  const rows = groups * Math.max(1, buckets);
  const cells = rows * measures.length;
  if (cells <= CELLS_MAX) return;
  const fitting = Math.floor(CELLS_MAX / (measures.length * Math.max(1, buckets))) - 1;
  const nearest =
    group_by.length > 0 && fitting >= 1
      ? `top ${fitting}`
      : `a coarser granularity than ${granularity ?? 'none'}, or a shorter time`;
  throw refuse(
    group_by.length > 0 && fitting >= 1 ? 'top' : 'granularity',
    `a response has at most ${CELLS_MAX} cells, and ${Math.max(1, buckets)} buckets of ${groups} groups with ${measures.length} measures have ${cells}. The nearest query that passes has ${nearest}`,
  );
}

/** @throws AnalyticsRefused when the query must read rows over a longer time than their bound */
function sourceOf(query: AnalyticsQuery, buckets: readonly Bucket[]): CheckedQuery['source'] {
  const { view, since, until } = query;
  if (view === 'usage') return 'usage';
  const isWhole = [since, until, ...buckets.slice(1).map(({ start }) => start)].every((at) => at % HOUR_MS === 0);
  const beyond = beyondRollup(query);
  if (view === 'spans' && isWhole && beyond.length === 0) return 'rollup';
  if (until - since <= ROWS_RANGE_MS_MAX) return 'rows';
  const reason =
    view !== 'spans'
      ? `the view ${view} reads rows`
      : beyond.length > 0
        ? `${beyond.slice(0, 3).join(', ')} ${beyond.length === 1 ? 'needs' : 'need'} rows instead of hours`
        : 'bounds that are not whole hours need rows';
  const aligned = `since ${iso(Math.floor(since / HOUR_MS) * HOUR_MS)} and until ${iso(Math.ceil(until / HOUR_MS) * HOUR_MS)}`;
  const nearest = view === 'spans' && beyond.length === 0 ? aligned : `since ${iso(until - ROWS_RANGE_MS_MAX)}`;
  throw refuse(
    'since',
    `${reason}, of which a query reads at most 31 days. The nearest query that passes has ${nearest}`,
  );
}

/** Returns true when the query asks for money, which needs costs:read. */
export const asksForCost = ({ query: { view, measures, filters } }: CheckedQuery): boolean =>
  view === 'usage' ||
  measures.some(({ measure }) => measure === 'cost_usd') ||
  filters.some(({ field }) => field === 'cost_usd');

/** Returns true when any measure is an estimate. */
export const isApproximate = ({ query }: CheckedQuery): boolean =>
  query.measures.some((one) => aggregateOf(query, one).approximate);
