// Runs the statements of an analytics query and returns its rows by group and bucket. Every
// statement is bounded in time, memory and rows, and ends when the caller aborts.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { planDayGroups, planDayRows, planRankedDays, type WholeDays, wholeDays } from './days.ts';
import {
  type AnalyticsQuery,
  countsTwice,
  type Group,
  planExtremes,
  planGroups,
  planRows,
  planTotals,
} from './plan.ts';

/** Time for all statements of one query together, milliseconds. */
export const ANALYTICS_MS_MAX = 10_000;
const RESULT_BYTES_MAX = 16_000_000;

const histogram = z.array(z.tuple([z.number(), z.number(), z.number()]));
export const measureValue = z.union([z.number(), z.null(), histogram]);
export type MeasureValue = z.output<typeof measureValue>;
const row = z.record(z.string(), z.union([z.string(), measureValue]));

export interface AnalyticsRow {
  /** Key of the bucket; null without granularity. */
  bucket: string | null;
  group: Group;
  values: MeasureValue[];
}

export interface AnalyticsResult {
  rows: AnalyticsRow[];
  /** Measures of all rows together. */
  totals: MeasureValue[];
}

export interface AnalyticsRead {
  query: AnalyticsQuery;
  /** True to read hours from the projection p_hour. */
  rollup: boolean;
  /** True to read days from their projections where hours would do and days can. */
  days: boolean;
  /** End of the time for the query, as performance.now() counts. */
  deadline: number;
  signal: AbortSignal;
}

/** The largest groups of a query, and its rows. */
export interface TopGroups {
  top: readonly Group[];
  /** True when there are further groups, which are the group OTHER. */
  truncated: boolean;
  result: AnalyticsResult;
  /** Rows of the same groups in the time before; null where none was asked for. */
  past: AnalyticsResult | null;
}

/**
 * Returns the largest groups by the first measure, at most `limit`, with the rows of a query.
 * @param before the query for the time before, of which the same groups are returned
 */
export async function readTop(
  clickhouse: ClickHouse,
  read: AnalyticsRead,
  limit: number,
  before: AnalyticsQuery | null = null,
): Promise<TopGroups> {
  const days = daysOf(read);
  const pastOf = async (top: readonly Group[]): Promise<AnalyticsResult | null> =>
    before === null ? null : readAnalytics(clickhouse, { ...read, query: before }, top);
  // With granularity, one statement would hold the states of every group in every bucket.
  if (days !== null && read.query.granularity === null && read.query.group_by.length > 0) {
    const ranked = await readRankedDays(clickhouse, read, days, limit);
    return { ...ranked, past: await pastOf(ranked.top) };
  }
  // One more than is shown tells whether any groups remain for OTHER.
  const groups = await readGroups(clickhouse, read, limit + 1);
  const top = groups.slice(0, limit);
  const [result, past] = await Promise.all([readAnalytics(clickhouse, read, top), pastOf(top)]);
  return { top, truncated: groups.length > limit, result, past };
}

const daysOf = ({ query, rollup, days }: AnalyticsRead) => (rollup && days ? wholeDays(query) : null);

async function readRankedDays(
  clickhouse: ClickHouse,
  read: AnalyticsRead,
  days: WholeDays,
  limit: number,
): Promise<Omit<TopGroups, 'past'>> {
  const { query } = read;
  const { rows, totals } = await clickhouse.rowsWithTotals<unknown>({
    name: 'analytics_ranked',
    ...planRankedDays(query, days, limit),
    ...boundsOf(read),
  });
  const found = rows.map((one) => row.parse(one));
  const whole = row.parse(totals ?? {});
  const place = (one: z.output<typeof row>): number => Number(one['place']) || Infinity;
  const sorted = found.toSorted((a, b) => place(a) - place(b));
  return {
    top: sorted.filter((one) => place(one) <= limit).map((one) => groupOf(query, one)),
    truncated: Number(whole['groups'] ?? 0) > limit,
    result: { rows: sorted.map((one) => rowOf(query, one)), totals: valuesOf(query, whole) },
  };
}

async function readGroups(clickhouse: ClickHouse, read: AnalyticsRead, limit: number): Promise<Group[]> {
  const { query, rollup } = read;
  if (query.group_by.length === 0) return [];
  const days = daysOf(read);
  const rows = await clickhouse.rows<unknown>({
    name: 'analytics_groups',
    ...(days === null ? planGroups(query, rollup, limit) : planDayGroups(query, days, limit)),
    ...boundsOf(read),
  });
  return rows.map((found) => groupOf(query, row.parse(found)));
}

/** Returns the rows of a query and its totals. Groups other than `top` are one group. */
export async function readAnalytics(
  clickhouse: ClickHouse,
  read: AnalyticsRead,
  top: readonly Group[],
): Promise<AnalyticsResult> {
  const { query, rollup } = read;
  const days = daysOf(read);
  const { rows, totals } = await clickhouse.rowsWithTotals<unknown>({
    name: 'analytics_rows',
    ...(days === null ? planRows(query, rollup, top) : planDayRows(query, days, top)),
    ...boundsOf(read),
  });
  const found = rows.map((one) => rowOf(query, row.parse(one)));
  if (countsTwice(query)) {
    const [whole] = await clickhouse.rows<unknown>({
      name: 'analytics_totals',
      ...planTotals(query, rollup),
      ...boundsOf(read),
    });
    return { rows: found, totals: valuesOf(query, row.parse(whole ?? {})) };
  }
  return { rows: found, totals: totals === null ? (found[0]?.values ?? []) : valuesOf(query, row.parse(totals)) };
}

/** Returns the values of the most extreme groups by the first measure, at most `limit`. */
export async function readExtremes(
  clickhouse: ClickHouse,
  read: Omit<AnalyticsRead, 'rollup' | 'days'>,
  { order, limit }: { order: 'largest' | 'smallest'; limit: number },
): Promise<AnalyticsRow[]> {
  const rows = await clickhouse.rows<unknown>({
    name: 'analytics_extremes',
    ...planExtremes(read.query, order, limit),
    ...boundsOf(read),
  });
  return rows.map((found) => rowOf(read.query, row.parse(found)));
}

/** Returns the bounds of one statement of a read. */
export function boundsOf({ deadline, signal }: Pick<AnalyticsRead, 'deadline' | 'signal'>) {
  return { timeoutMs: Math.max(1, Math.round(deadline - performance.now())), bytesMax: RESULT_BYTES_MAX, signal };
}

function rowOf(query: AnalyticsQuery, found: z.output<typeof row>): AnalyticsRow {
  const { t } = found;
  return { bucket: typeof t === 'string' ? t : null, group: groupOf(query, found), values: valuesOf(query, found) };
}

function groupOf({ group_by }: AnalyticsQuery, found: z.output<typeof row>): Group {
  return group_by.map((_, index) => String(found[`d${index}`] ?? ''));
}

function valuesOf({ measures }: AnalyticsQuery, found: z.output<typeof row>): MeasureValue[] {
  return measures.map((_, index) => measureValue.parse(found[`m${index}`] ?? null));
}
