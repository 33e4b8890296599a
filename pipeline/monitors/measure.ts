// Measures monitors: one statement for all monitors of a batch. Monitors of one organization that look
// at the same rows by the same dimension share a statement, whatever their measures and filters are,
// and those that measure the same share its value. Guarantees: what a monitor may not ask for is an
// error of that monitor alone.
import { type Agg, SOURCES, type View, VIEWS } from '../../sql/analytics/catalog.ts';
import { type AnalyticsAsked, AnalyticsRefused, checkedQuery } from '../../sql/analytics/check.ts';
import { aggregateOf, type AnalyticsQuery } from '../../sql/analytics/plan.ts';
import { type AnalyticsRow, readExtremes } from '../../sql/analytics/read.ts';
import { readVariants, type Variant, VARIANT_FILTERS_MAX, VARIANTS_MAX } from '../../sql/analytics/variants.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { FilterOp } from '../../sql/attribute_path.ts';
import type { MonitorRecord } from '../../schemas/records/monitor.ts';
import { GROUPS_MAX, type Measured } from '../domain/monitors/evaluate.ts';

const MINUTE_MS = 60_000;

/** Monitors that one statement measures. */
export interface Batch {
  org_id: string;
  /** The same for monitors that look at the same rows by the same dimension. */
  rows: string;
  variants: Alike[];
}

/** Monitors that measure the same, with thresholds and receivers of their own. */
interface Alike {
  asked: MonitorRecord;
  monitors: MonitorRecord[];
}

/**
 * Returns monitors in batches, in the order of the first monitor of each.
 * @param variantsMaxOf the largest number of variants of a statement over these rows
 */
export function batchesOf(
  monitors: readonly MonitorRecord[],
  variantsMaxOf: (rows: string) => number = () => VARIANTS_MAX,
): Batch[] {
  return [...Map.groupBy(monitors, rowsOf)].flatMap(([rows, same]) => {
    const batches: Batch[] = [];
    let filters = 0;
    for (const monitors of Map.groupBy(same, measuredOf).values()) {
      const [asked] = monitors;
      if (asked === undefined) continue;
      const own = asked.query.filters.length;
      const last = batches.at(-1);
      const fits = (last?.variants.length ?? 0) < variantsMaxOf(rows) && filters + own <= VARIANT_FILTERS_MAX;
      filters = last !== undefined && fits ? filters + own : own;
      if (last !== undefined && fits) last.variants.push({ asked, monitors });
      else batches.push({ org_id: asked.org_id, rows, variants: [{ asked, monitors }] });
    }
    return batches;
  });
}

/** Returns the two halves of a batch; a batch with one variant is left as it is. */
export function halvesOf({ variants, ...batch }: Batch): Batch[] {
  const middle = Math.ceil(variants.length / 2);
  const halves = [variants.slice(0, middle), variants.slice(middle)];
  return halves.filter((half) => half.length > 0).map((half) => ({ ...batch, variants: half }));
}

/** Returns a key of the rows and the dimension of a monitor: monitors with the same key can share a statement. */
const rowsOf = ({ org_id, query, group_by, window_minutes }: MonitorRecord): string =>
  JSON.stringify([org_id, query.view, group_by, window_minutes]);

/** Returns a key of what a monitor measures of its rows. */
const measuredOf = ({ query, group_by, threshold }: MonitorRecord): string =>
  JSON.stringify([query.measures, query.filters, group_by.length === 0 ? null : orderOf(threshold)]);

const orderOf = (threshold: MonitorRecord['threshold']): Variant['order'] =>
  'above' in threshold ? 'largest' : 'smallest';

/** What was found for one monitor, or why its query cannot be answered. */
export type Finding = Measured | { refused: string };

export interface MeasureOptions {
  /** Instant as of which is measured, milliseconds since the epoch. */
  now: number;
  timeoutMs: number;
  signal: AbortSignal;
}

/**
 * Measures a batch with one statement.
 * @returns a finding for each variant, in their order
 * @throws the error of the store
 */
export async function measure(
  clickhouse: ClickHouse,
  batch: Batch,
  { now, timeoutMs, signal }: MeasureOptions,
): Promise<Finding[]> {
  const checked = batch.variants.map(({ asked: monitor }) => checkedOf(monitor, now));
  const asked = checked.flatMap((one) => ('refused' in one ? [] : [one]));
  const read = { deadline: performance.now() + timeoutMs, signal };
  const rows = await rowsOfAll(clickhouse, asked, read);
  return checked.map((one) => ('refused' in one ? one : findingOf(one.query, rows[asked.indexOf(one)] ?? [])));
}

/** Returns the rows of each variant. A variant alone is a plain statement, which the engine can answer from an index. */
async function rowsOfAll(
  clickhouse: ClickHouse,
  [first, ...others]: readonly Variant[],
  read: { deadline: number; signal: AbortSignal },
): Promise<AnalyticsRow[][]> {
  const limit = GROUPS_MAX + 1;
  if (first === undefined) return [];
  if (others.length > 0) return readVariants(clickhouse, [first, ...others], read, limit);
  return [await readExtremes(clickhouse, { query: first.query, ...read }, { order: first.order, limit })];
}

function findingOf(query: AnalyticsQuery, rows: readonly AnalyticsRow[]): Measured {
  const [asked] = query.measures;
  const grouped = query.group_by.length > 0;
  return {
    values: rows.slice(0, GROUPS_MAX).map(({ group, values: [value] }) => ({
      group: grouped ? (group[0] ?? '') : null,
      value: typeof value === 'number' ? value : null,
    })),
    missing: asked !== undefined && aggregateOf(query, asked).additive ? 0 : null,
    truncated: rows.length > GROUPS_MAX,
  };
}

/** Checks the query of monitors that measure the same: another version of the service may have stored it. */
function checkedOf(monitor: MonitorRecord, now: number): Variant | { refused: string } {
  try {
    const { query, measures } = checkedQuery(monitor.org_id, askedOf(monitor, now), now);
    return {
      query: { ...query, measures: measures.map(({ measure, agg }) => ({ measure, agg })) },
      order: orderOf(monitor.threshold),
    };
  } catch (error) {
    if (!(error instanceof AnalyticsRefused)) throw error;
    return { refused: error.message };
  }
}

/** @throws AnalyticsRefused for a view that this version does not have */
function askedOf({ query, group_by, window_minutes }: MonitorRecord, now: number): AnalyticsAsked {
  const view = VIEWS.find((one) => one === query.view);
  if (view === undefined) throw new AnalyticsRefused(`view: there is no view ${query.view}`);
  return {
    view,
    measures: query.measures.map(({ measure, agg }) => ({ measure, agg: knownAgg(view, measure, agg) })),
    group_by,
    filters: query.filters.map(({ field, op, value }) => ({ field, op: op as FilterOp, value })),
    timezone: 'UTC',
    since: now - window_minutes * MINUTE_MS,
    until: now,
    top: GROUPS_MAX,
  };
}

/** @throws AnalyticsRefused for an aggregation that this version does not have */
function knownAgg(view: View, measure: string, agg: string): Agg {
  const aggs = Object.keys(SOURCES[view].measures[measure]?.aggs ?? {}) as Agg[];
  const known = aggs.find((one) => one === agg);
  if (known === undefined) throw new AnalyticsRefused(`measures[0]: the view ${view} has no ${agg} of ${measure}`);
  return known;
}
