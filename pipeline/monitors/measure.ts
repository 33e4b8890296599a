// Measures monitors: one statement for all monitors of a batch. Monitors of one organization without
// groups that look at the same rows share a statement, as do monitors with the same groups and
// measure. Guarantees: what a monitor may not ask for is an error of that monitor alone.
import { type Agg, SOURCES, type View, VIEWS } from '../../sql/analytics/catalog.ts';
import { type AnalyticsAsked, AnalyticsRefused, checkedQuery } from '../../sql/analytics/check.ts';
import { aggregateOf, type AnalyticsQuery, type MeasureAsked } from '../../sql/analytics/plan.ts';
import { type AnalyticsRow, readExtremes } from '../../sql/analytics/read.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { FilterOp } from '../../sql/attribute_path.ts';
import type { MonitorRecord } from '../../schemas/records/monitor.ts';
import { GROUPS_MAX, type Measured } from '../domain/monitors/evaluate.ts';

/** Measures in one statement. */
const MEASURES_MAX = 8;
/** Time for the statement of one batch, milliseconds. */
export const MEASURE_MS_MAX = 5000;
const MINUTE_MS = 60_000;

/** Monitors that one statement measures. */
export interface Batch {
  org_id: string;
  monitors: MonitorRecord[];
}

/** Returns monitors in batches, in the order of the first monitor of each. */
export function batchesOf(monitors: readonly MonitorRecord[]): Batch[] {
  return [...Map.groupBy(monitors, rowsOf).values()].flatMap((same) => {
    const batches: Batch[] = [];
    for (let from = 0; from < same.length; from += MEASURES_MAX) {
      const chunk = same.slice(from, from + MEASURES_MAX);
      const [first] = chunk;
      if (first !== undefined) batches.push({ org_id: first.org_id, monitors: chunk });
    }
    return batches;
  });
}

/** Returns a key of what a monitor reads: monitors with the same key can share a statement. */
function rowsOf({ org_id, query, group_by, window_minutes, threshold }: MonitorRecord): string {
  const ranked = group_by.length === 0 ? null : [query.measures, orderOf(threshold)];
  return JSON.stringify([org_id, query.view, query.filters, group_by, window_minutes, ranked]);
}

const orderOf = (threshold: MonitorRecord['threshold']): 'largest' | 'smallest' =>
  'above' in threshold ? 'largest' : 'smallest';

/** What was found for one monitor, or why its query cannot be answered. */
export type Finding = Measured | { refused: string };

/**
 * Measures a batch as of an instant.
 * @returns a finding for each monitor, in their order
 * @throws the error of the store
 */
export async function measure(
  clickhouse: ClickHouse,
  { monitors }: Batch,
  now: number,
  signal: AbortSignal,
): Promise<Finding[]> {
  const checked = monitors.map((monitor) => ({ monitor, ...checkedOf(monitor, now) }));
  const asked = checked.flatMap(({ query, monitor }) => (query === null ? [] : [{ query, monitor }]));
  const [first] = asked;
  const measures = asked.flatMap(({ query }) => query.measures);
  const distinct = [...new Map(measures.map((one) => [JSON.stringify(one), one])).values()];
  const rows =
    first === undefined
      ? []
      : await readExtremes(
          clickhouse,
          { query: { ...first.query, measures: distinct }, deadline: performance.now() + MEASURE_MS_MAX, signal },
          { order: orderOf(first.monitor.threshold), limit: GROUPS_MAX + 1 },
        );
  return checked.map(({ query, refused }) => (query === null ? { refused } : findingOf(query, distinct, rows)));
}

function findingOf(query: AnalyticsQuery, distinct: readonly MeasureAsked[], rows: readonly AnalyticsRow[]): Measured {
  const [asked] = query.measures;
  const at = distinct.findIndex(({ measure, agg }) => measure === asked?.measure && agg === asked.agg);
  const grouped = query.group_by.length > 0;
  return {
    values: rows.slice(0, GROUPS_MAX).map(({ group, values }) => {
      const value = values[at];
      return { group: grouped ? (group[0] ?? '') : null, value: typeof value === 'number' ? value : null };
    }),
    missing: asked !== undefined && aggregateOf(query, asked).additive ? 0 : null,
    truncated: rows.length > GROUPS_MAX,
  };
}

type Checked = { query: AnalyticsQuery; refused: '' } | { query: null; refused: string };

/** Checks the query of a monitor: another version of the service may have stored it. */
function checkedOf(monitor: MonitorRecord, now: number): Checked {
  try {
    const { query, measures } = checkedQuery(monitor.org_id, askedOf(monitor, now), now);
    return { query: { ...query, measures: measures.map(({ measure, agg }) => ({ measure, agg })) }, refused: '' };
  } catch (error) {
    if (!(error instanceof AnalyticsRefused)) throw error;
    return { query: null, refused: error.message };
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
