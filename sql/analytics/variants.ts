// Answers several queries in one statement: queries that look at the same rows by the same dimension,
// each with a measure and filters of its own. The rows are read once; every variant aggregates those
// that meet its filters, with the catalog's own expressions, so its values are those of a statement
// of its own. Bounds: VARIANTS_MAX variants, VARIANT_FILTERS_MAX filters, a number of groups for each.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { SOURCES } from './catalog.ts';
import {
  aggregateOf,
  type AnalyticsQuery,
  type ColumnFilter,
  dimensionOf,
  filterConditions,
  type PlannedStatement,
  rowConditions,
} from './plan.ts';
import { type AnalyticsRead, type AnalyticsRow, boundsOf, measureValue } from './read.ts';

/** Variants and filters of one statement. More save little, and make one failure that of many. */
export const VARIANTS_MAX = 32;
export const VARIANT_FILTERS_MAX = 64;

/** A query with one measure and at most one dimension. */
export interface Variant {
  query: AnalyticsQuery;
  /** Order in which groups are extreme. */
  order: 'largest' | 'smallest';
}

/**
 * Returns the statement for variants of a query. Without a dimension one row {m0, m1, …}, a value
 * for each variant; with one, rows {k, d0, m0}: the most extreme groups of variant k. Rows without a
 * value of the dimension belong to no group.
 * @param variants their queries have the same organization, view, dimension and time
 */
export function planVariants([first, ...others]: readonly [Variant, ...Variant[]], limit: number): PlannedStatement {
  const variants = [first, ...others];
  const common = first.query.filters.filter((one) => variants.every(({ query }) => hasFilter(query, one)));
  const rows = rowConditions(first.query, false);
  const shared = filterConditions({ ...first.query, filters: common, attributes: [] });
  const params: Record<string, unknown> = { ...rows.params, ...shared.params };
  const named = variants.map(({ query }, index) => {
    const filters = query.filters.filter((one) => !hasFilter({ filters: common }, one));
    const own = filterConditions({ ...query, filters });
    for (const [name, value] of Object.entries(own.params)) params[`v${index}_${name}`] = value;
    const condition = own.found.length === 0 ? 'true' : own.found.map((one) => `(${one})`).join(' AND ');
    return `(${condition.replaceAll(/\{([a-z0-9_]+):/g, `{v${index}_$1:`)}) AS in_${index}`;
  });
  const from = `FROM ${SOURCES[first.query.view].from} WHERE ${[...rows.found, ...shared.found].join(' AND ')}`;
  const values = variants.map(({ query }, index) => valueOf(query, `in_${index}`));
  const [dimension] = first.query.group_by;
  if (dimension === undefined) {
    const selected = values.map((value, index) => `${value} AS m${index}`);
    return { sql: `WITH ${named.join(', ')} SELECT ${selected.join(', ')} ${from}`, params };
  }
  const tuples = variants.map(
    ({ order }, index) =>
      `(toUInt8(${index}), countIf(in_${index}), toNullable(${values[index] ?? ''}), toInt8(${order === 'largest' ? -1 : 1}))`,
  );
  const groups = `WITH ${named.join(', ')} SELECT toString(${dimensionOf(first.query, dimension).sql}) AS d0, [${tuples.join(', ')}] AS variants ${from} GROUP BY d0 HAVING d0 != ''`;
  return {
    sql: `SELECT v.1 AS k, d0, v.3 AS m0 FROM (${groups}) ARRAY JOIN variants AS v WHERE v.2 > 0 ORDER BY k, m0 * v.4, d0 LIMIT {limit:UInt32} BY k`,
    params: { ...params, limit },
  };
}

const hasFilter = ({ filters }: Pick<AnalyticsQuery, 'filters'>, wanted: ColumnFilter): boolean =>
  filters.some((one) => isDeepStrictEqual(one, wanted));

function valueOf(query: AnalyticsQuery, condition: string): string {
  const [measure] = query.measures;
  if (measure === undefined) throw new Error('a measure is missing');
  return aggregateOf(query, measure).only(condition);
}

const grouped = z.object({ k: z.int(), d0: z.string(), m0: measureValue });
const totals = z.record(z.string(), measureValue);

/** Returns the rows of each variant, in their order, as readExtremes returns those of one query. */
export async function readVariants(
  clickhouse: ClickHouse,
  variants: readonly [Variant, ...Variant[]],
  read: Pick<AnalyticsRead, 'deadline' | 'signal'>,
  limit: number,
): Promise<AnalyticsRow[][]> {
  const rows = await clickhouse.rows<unknown>({
    name: 'analytics_variants',
    ...planVariants(variants, limit),
    ...boundsOf(read),
  });
  if (variants[0].query.group_by.length === 0) {
    const values = totals.parse(rows[0] ?? {});
    return variants.map((_, index) => [{ bucket: null, group: [], values: [values[`m${index}`] ?? null] }]);
  }
  const found: AnalyticsRow[][] = variants.map(() => []);
  for (const row of rows) {
    const { k, d0, m0 } = grouped.parse(row);
    found[k]?.push({ bucket: null, group: [d0], values: [m0] });
  }
  return found;
}
