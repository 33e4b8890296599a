// Answers analytics queries: finds the groups to show, reads their rows, fills buckets without data,
// and reads the period before. The reads of one query share a deadline and end with the caller.
import type { ClickHouse } from '../../../sql/client/client.ts';
import { SOURCES } from '../../../sql/analytics/catalog.ts';
import { asksForCost, type CheckedQuery, checkedQuery, isApproximate } from '../../../sql/analytics/check.ts';
import { aggregateOf, type AnalyticsQuery, type Group, OTHER } from '../../../sql/analytics/plan.ts';
import {
  ANALYTICS_MS_MAX,
  type AnalyticsResult,
  type AnalyticsRow,
  type MeasureValue,
  readTop,
} from '../../../sql/analytics/read.ts';
import { hasDays } from '../../../sql/analytics/has_days.ts';
import { type Bucket, TimeZone } from '../../../sql/analytics/time_zone.ts';
import { refusedAsInvalid } from '../../http/analytics_refusal.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import type { OrgSlots } from '../../http/org_slots.ts';
import type { AnalyticsBody, AnalyticsResultBody, Cell } from './schema.ts';

/** Queries of one organization that one API process answers at a time. */
export const QUERIES_ORG_MAX = 4;

export interface AnalyticsDeps {
  clickhouse: ClickHouse;
  slots: OrgSlots;
  now: () => number;
}

type Fill = AnalyticsBody['fill'];

/** @throws ApiError invalid_request, forbidden or rate_limited */
export async function queryAnalytics(
  deps: AnalyticsDeps,
  credential: OrgCredential,
  body: AnalyticsBody,
  signal: AbortSignal,
) {
  const { org_id } = credential;
  const checked = refusedAsInvalid(() => checkedQuery(org_id, body, deps.now()));
  if (asksForCost(checked) && !may(credential, 'costs:read'))
    throw new ApiError('forbidden', 'Costs in analytics need the permission costs:read.');
  const release = deps.slots.take(org_id);
  if (release === null) {
    const detail = `This organization has ${QUERIES_ORG_MAX} analytics queries in progress. Retry after the number of seconds in Retry-After.`;
    throw new ApiError('rate_limited', detail, { headers: { 'Retry-After': '1' } });
  }
  try {
    return await answer(deps, checked, body, { deadline: performance.now() + ANALYTICS_MS_MAX, signal });
  } finally {
    release();
  }
}

interface Ends {
  /** End of the time for the query, as performance.now() counts. */
  deadline: number;
  signal: AbortSignal;
}

/** @throws ApiError invalid_request when the query takes longer than it may */
async function answer(deps: AnalyticsDeps, checked: CheckedQuery, body: AnalyticsBody, ends: Ends) {
  try {
    return await read(deps, checked, body, ends);
  } catch (error) {
    if (ends.signal.aborted || performance.now() < ends.deadline) throw error;
    const detail = `since: the query took longer than ${ANALYTICS_MS_MAX / 1000} seconds. Ask for a shorter time, fewer measures or fewer groups`;
    throw new ApiError('invalid_request', detail, { cause: error });
  }
}

async function read({ clickhouse }: AnalyticsDeps, checked: CheckedQuery, body: AnalyticsBody, ends: Ends) {
  const began = performance.now();
  const { query, buckets, source } = checked;
  const rollup = source === 'rollup';
  const asked = { query, rollup, days: rollup && (await hasDays(clickhouse, { signal: ends.signal })), ...ends };
  const before =
    body.compare === undefined
      ? null
      : { ...query, since: query.since - (query.until - query.since), until: query.since };
  const { top, truncated, result, past } = await readTop(clickhouse, asked, body.top, before);
  const data: AnalyticsResultBody = {
    columns: columnsOf(checked),
    rows: rowsOf(query, result, buckets, top, body.fill),
    totals: result.totals,
  };
  if (before !== null && past !== null) {
    const { granularity, timezone, since, until } = before;
    const pastBuckets =
      granularity === null ? [] : new TimeZone(timezone).buckets(granularity, since, until, buckets.length + 1);
    data.previous = {
      since: new Date(since).toISOString(),
      until: new Date(until).toISOString(),
      rows: rowsOf(before, past, pastBuckets, top, body.fill),
      totals: past.totals,
    };
  }
  return {
    data,
    meta: {
      granularity: query.granularity,
      since: new Date(query.since).toISOString(),
      until: new Date(query.until).toISOString(),
      source,
      approximate: isApproximate(checked),
      truncated,
      took_ms: Math.round(performance.now() - began),
    },
  };
}

function columnsOf({ query, measures }: CheckedQuery): AnalyticsResultBody['columns'] {
  return [
    ...(query.granularity === null ? [] : [{ name: 'time', type: 'time', unit: null, role: 'time' } as const]),
    ...query.group_by.map((name) => ({ name, type: 'text', unit: null, role: 'dimension' }) as const),
    ...measures.map(({ measure, agg, as }) => ({
      name: as,
      type: agg === 'histogram' ? ('histogram' as const) : ('number' as const),
      unit: agg === 'uniq' ? 'count' : (SOURCES[query.view].measures[measure]?.unit ?? null),
      role: 'measure' as const,
    })),
  ];
}

/** Returns the cells of all rows: by time, then in the order of the groups, with `other` last. */
function rowsOf(
  query: AnalyticsQuery,
  { rows }: AnalyticsResult,
  buckets: readonly Bucket[],
  top: readonly Group[],
  fill: Fill,
): Cell[][] {
  const order = new Map(
    [...top, query.group_by.map(() => OTHER)].map((group, index) => [JSON.stringify(group), index]),
  );
  const rank = ({ group }: AnalyticsRow): number => order.get(JSON.stringify(group)) ?? order.size;
  const sorted = rows.toSorted((a, b) => rank(a) - rank(b));
  if (query.granularity === null) return sorted.map(({ group, values }) => [...group, ...values]);
  const byBucket = Map.groupBy(sorted, ({ bucket }) => bucket);
  const groups = [...new Map(sorted.map(({ group }) => [JSON.stringify(group), group])).values()];
  return buckets.flatMap(({ start, key }) => {
    const time = new Date(start).toISOString();
    const found = byBucket.get(key) ?? [];
    if (fill === 'none') return found.map(({ group, values }) => [time, ...group, ...values]);
    const values = new Map(found.map((row) => [JSON.stringify(row.group), row.values]));
    const shown = groups.length === 0 && query.group_by.length === 0 ? [[]] : groups;
    return shown.map((group) => [time, ...group, ...(values.get(JSON.stringify(group)) ?? emptyValues(query, fill))]);
  });
}

function emptyValues(query: AnalyticsQuery, fill: Fill): MeasureValue[] {
  return query.measures.map((one) => (fill === 'zero' && aggregateOf(query, one).additive ? 0 : null));
}
