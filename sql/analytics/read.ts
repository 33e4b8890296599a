// Runs the statements of an analytics query and returns its rows by group and bucket. Every
// statement is bounded in time, memory and rows, and ends when the caller aborts.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
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
  /** End of the time for the query, as performance.now() counts. */
  deadline: number;
  signal: AbortSignal;
}

/** Returns the largest groups by the first measure, at most `limit`. */
export async function readGroups(clickhouse: ClickHouse, read: AnalyticsRead, limit: number): Promise<Group[]> {
  const { query, rollup } = read;
  if (query.group_by.length === 0) return [];
  const rows = await clickhouse.rows<unknown>({
    name: 'analytics_groups',
    ...planGroups(query, rollup, limit),
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
  const { rows, totals } = await clickhouse.rowsWithTotals<unknown>({
    name: 'analytics_rows',
    ...planRows(query, rollup, top),
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
  read: Omit<AnalyticsRead, 'rollup'>,
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
