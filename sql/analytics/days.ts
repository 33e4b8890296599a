// Plans analytics queries over whole days in UTC, which the projections p_day_model and p_day_agent answer
// with far fewer rows than hours. In: a checked query that hours can answer too. Out: SQL and parameters. What lies
// before the first whole day and after the last one is read from rows, less than two days of them, in
// the same statement. Both parts return states of the aggregate functions, which are merged, so a value
// is that of all rows together.
import { isDeepStrictEqual } from 'node:util';
import { type Aggregate, everyRow, SOURCES } from './catalog.ts';
import {
  aggregateOf,
  amongGroups,
  type AnalyticsQuery,
  dateBucketOf,
  dimensionOf,
  filterConditions,
  type Group,
  OTHER,
  type PlannedStatement,
  SHORT_TASKS,
  topParam,
} from './plan.ts';
import { DAY_MS, TimeZone } from './time_zone.ts';

/** Below so many whole days, hours are as fast: the ends of the time weigh more than the days. */
const DAYS_MIN = 7;
/** Buckets that are compared with those of UTC; a query has fewer. */
const BUCKETS_MAX = 10_000;
/** Day of a span, as the projections have it. */
const DAY = `toDate(${SOURCES.spans.time})`;

/** Whole days in UTC, milliseconds; `until` is exclusive. */
export interface WholeDays {
  from: number;
  until: number;
}

/** Dimensions that have a projection each: no projection of days has two of them. */
const APART = ['model', 'agent_id'];

/**
 * Returns the whole days of a query that hours can answer; null where it has few, where its buckets
 * do not begin with days of UTC, and where it asks for models and agents.
 */
export function wholeDays(query: AnalyticsQuery): WholeDays | null {
  const names = new Set([...query.group_by, ...query.filters.map(({ field }) => field)]);
  if (APART.every((name) => names.has(name))) return null;
  const from = Math.ceil(query.since / DAY_MS) * DAY_MS;
  const until = Math.floor(query.until / DAY_MS) * DAY_MS;
  return until - from >= DAYS_MIN * DAY_MS && hasUtcBuckets(query) ? { from, until } : null;
}

function hasUtcBuckets({ granularity, timezone, since, until }: AnalyticsQuery): boolean {
  if (granularity === null) return true;
  if (dateBucketOf(granularity, DAY) === undefined) return false;
  if (timezone === 'UTC') return true;
  const buckets = (zone: string, end: number) => new TimeZone(zone).buckets(granularity, since, end, BUCKETS_MAX);
  // The first bucket tells most zones apart, at a fraction of the cost.
  return [since + 1, until].every((end) => isDeepStrictEqual(buckets(timezone, end), buckets('UTC', end)));
}

/** The states that the measures of a statement need, each once. */
class States {
  readonly #calls: string[] = [];

  /** Returns the expression of an aggregate over columns of states, which a prefix and a number name. */
  merged({ written }: Aggregate, prefix: string): string {
    return written((name, argument, known) => {
      const call = everyRow(name, argument, known);
      if (!this.#calls.includes(call)) this.#calls.push(call);
      return suffixed(nameOf(call), 'Merge') + `(${prefix}${this.#calls.indexOf(call)})`;
    });
  }

  /** Returns the columns of the states over rows. */
  selected(prefix: string): string[] {
    return this.#calls.map((call, index) => `${suffixed(call, 'State')} AS ${prefix}${index}`);
  }

  /** Returns the columns of the states over other states. */
  remerged(from: string, to: string): string[] {
    return this.#calls.map(
      (call, index) => `${suffixed(nameOf(call), 'MergeState')}(${from}${index}) AS ${to}${index}`,
    );
  }
}

/** Returns the name of the function that is called, with its parameters. */
const nameOf = (call: string): string => /^\w+(?:\([\d., ]+\))?/.exec(call)?.[0] ?? call;
const suffixed = (call: string, suffix: string): string => call.replace(/^\w+/, (word) => `${word}${suffix}`);

/** Returns the statement for the largest groups; its rows are those of planGroups. */
export function planDayGroups(query: AnalyticsQuery, days: WholeDays, limit: number): PlannedStatement {
  const [states, dimensions] = [new States(), dimensionsOf(query)];
  const rank = states.merged(rankOf(query), 's');
  const keys = dimensions.map((sql, index) => `${sql} AS d${index}`);
  const { sql, params } = stated(query, days, keys, states);
  const names = namesOf(keys);
  return {
    sql: `SELECT ${names.join(', ')} FROM (${sql}) GROUP BY ${names.join(', ')} HAVING NOT (${isOther(names)}) ORDER BY ${rank} DESC, ${names.join(', ')} LIMIT {limit:UInt32} ${SHORT_TASKS}`,
    params: { ...params, other: OTHER, limit },
  };
}

/** Returns the statement for rows and totals, which are those of planRows. */
export function planDayRows(query: AnalyticsQuery, days: WholeDays, top: readonly Group[]): PlannedStatement {
  const [states, dimensions] = [new States(), dimensionsOf(query)];
  const measures = measuresOf(query, states, 's');
  const shown = amongGroups(dimensions);
  const bucket = query.granularity === null ? undefined : dateBucketOf(query.granularity, DAY);
  const keys = [
    ...(bucket === undefined ? [] : [`${bucket} AS t`]),
    ...dimensions.map((sql, index) => `if(${shown}, toString(${sql}), {other:String}) AS d${index}`),
  ];
  const { sql, params } = stated(query, days, keys, states);
  const names = namesOf(keys);
  const grouped = names.length === 0 ? '' : ` GROUP BY ${names.join(', ')} WITH TOTALS ORDER BY ${names.join(', ')}`;
  return {
    sql: `SELECT ${[...names, ...measures].join(', ')} FROM (${sql})${grouped} ${SHORT_TASKS}`,
    params: { ...params, ...(dimensions.length === 0 ? {} : { ...topParam(top), other: OTHER }) },
  };
}

/**
 * Returns the statement for the rows of the largest groups of a query without granularity, which
 * planDayGroups and planDayRows would find in two. Rows: {d0, d1, m0, …, place}, with the place of the
 * group from 1 on, and 0 for OTHER. The totals have the number of groups as `groups`.
 */
export function planRankedDays(query: AnalyticsQuery, days: WholeDays, top: number): PlannedStatement {
  const [states, dimensions] = [new States(), dimensionsOf(query)];
  const rank = states.merged(rankOf(query), 's');
  const measures = measuresOf(query, states, 'r');
  const keys = dimensions.map((sql, index) => `toString(${sql}) AS g${index}`);
  const { sql, params } = stated(query, days, keys, states);
  const names = namesOf(keys);
  const groups = `SELECT ${[...names, ...states.remerged('s', 'r')].join(', ')}, ${rank} AS rank FROM (${sql}) GROUP BY ${names.join(', ')}`;
  const placed = `SELECT *, ${isOther(names)} AS is_other, if(is_other, 0, toUInt32(row_number() OVER (ORDER BY is_other, rank DESC, ${names.join(', ')}))) AS nth FROM (${groups})`;
  const shown = names.map((name, index) => `if(nth BETWEEN 1 AND {top:UInt32}, ${name}, {other:String}) AS d${index}`);
  const shownNames = namesOf(shown);
  return {
    sql: `SELECT ${[...shown, ...measures].join(', ')}, if(min(nth) > {top:UInt32}, 0, min(nth)) AS place, toUInt32(countIf(nth > 0)) AS groups FROM (${placed}) GROUP BY ${shownNames.join(', ')} WITH TOTALS ${SHORT_TASKS}`,
    params: { ...params, other: OTHER, top },
  };
}

const dimensionsOf = (query: AnalyticsQuery): string[] => query.group_by.map((name) => dimensionOf(query, name).sql);
const namesOf = (keys: readonly string[]): string[] => keys.map((key) => key.slice(key.lastIndexOf(' ') + 1));
const isOther = (names: readonly string[]): string => names.map((name) => `${name} = {other:String}`).join(' AND ');

function rankOf(query: AnalyticsQuery): Aggregate {
  const [first] = query.measures;
  if (first === undefined) throw new Error('a measure is missing');
  return aggregateOf(query, first);
}

const measuresOf = (query: AnalyticsQuery, states: States, prefix: string): string[] =>
  query.measures.map((one, index) => `${states.merged(aggregateOf(query, one), prefix)} AS m${index}`);

/** Returns the statement for the keys and the states `s0`, …: days from a projection, and the ends from rows. */
function stated(query: AnalyticsQuery, days: WholeDays, keys: readonly string[], states: States): PlannedStatement {
  const { found, params } = filterConditions(query);
  const names = namesOf(keys);
  const over = (time: string): string =>
    `SELECT ${[...keys, ...states.selected('s')].join(', ')} FROM spans WHERE ${['org_id = {org_id:String}', time, ...found].join(' AND ')}${names.length === 0 ? '' : ` GROUP BY ${names.join(', ')}`}`;
  const at = (name: string): string => `fromUnixTimestamp64Milli({${name}:Int64}, 'UTC')`;
  const { time } = SOURCES.spans;
  const ends = [
    ...(query.since < days.from ? [`${time} >= ${at('since_ms')} AND ${time} < ${at('from_ms')}`] : []),
    ...(days.until < query.until ? [`${time} >= ${at('days_end_ms')} AND ${time} < ${at('until_ms')}`] : []),
  ];
  const whole = over(`${DAY} >= toDate(${at('from_ms')}) AND ${DAY} < toDate(${at('days_end_ms')})`);
  return {
    sql: ends.length === 0 ? whole : `${whole} UNION ALL ${over(`(${ends.join(' OR ')})`)}`,
    params: {
      ...params,
      org_id: query.org_id,
      since_ms: query.since,
      from_ms: days.from,
      days_end_ms: days.until,
      until_ms: query.until,
    },
  };
}
