// Routes of analytics: the query, and the schema of what it may ask for.
import { AGGS, type Agg, SOURCES, type View, VIEWS } from '../../../sql/analytics/catalog.ts';
import { BOUNDS } from '../../../sql/analytics/check.ts';
import { GRANULARITIES } from '../../../sql/analytics/time_zone.ts';
import { FILTER_OPS } from '../../../sql/attribute_path.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AnalyticsDeps, QUERIES_ORG_MAX, queryAnalytics } from './analytics.ts';
import {
  analyticsMeta,
  analyticsQuery,
  analyticsResult,
  analyticsSchema,
  FILTERS_MAX,
  GROUP_BY_MAX,
  MEASURES_MAX,
  TOP_MAX,
} from './schema.ts';

const TAG = 'Analytics';

export function analyticsRoutes(deps: AnalyticsDeps): Route[] {
  return [queryAnalyticsRoute(deps), getAnalyticsSchemaRoute()];
}

function queryAnalyticsRoute(deps: AnalyticsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/analytics/query',
    operation_id: 'queryAnalytics',
    summary: 'Query analytics',
    description: `Returns measures of spans, traces, scores or use by time and group, as a table with totals. \`GET /v1/analytics/schema\` lists what each view has. Queries that need only hours of spans cover months; others read rows, of at most 31 days. Groups beyond \`top\` are one group \`other\`, to which a value that is itself \`other\` belongs, so that sums stay right. Costs also need the permission \`costs:read\`. An organization may run ${QUERIES_ORG_MAX} queries at a time, each for at most 10 seconds.`,
    tag: TAG,
    permission: 'traces:read',
    audit: null,
    body: analyticsQuery,
    example: {
      view: 'spans',
      measures: [
        { measure: 'duration_ms', agg: 'p95', as: 'p95' },
        { measure: 'output_tokens', agg: 'sum' },
      ],
      group_by: ['model'],
      filters: [{ field: 'kind', op: 'eq', value: 'llm' }],
      granularity: 'hour',
      since: '2026-11-20T00:00:00Z',
      until: '2026-11-22T00:00:00Z',
      top: 10,
      fill: 'zero',
    },
    response: analyticsResult,
    meta: analyticsMeta,
    errors: ['rate_limited'],
    handler: ({ credential, body, signal }) => queryAnalytics(deps, credential, body, signal),
  });
}

function getAnalyticsSchemaRoute(): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/analytics/schema',
    operation_id: 'getAnalyticsSchema',
    summary: 'Get the schema of analytics',
    description:
      'Returns the views of `POST /v1/analytics/query` with their measures, aggregations, dimensions and filter fields, and the bounds of a query.',
    tag: TAG,
    permission: 'traces:read',
    response: analyticsSchema,
    handler: () => ({
      data: {
        views: VIEWS.map(viewOf),
        ops: [...FILTER_OPS],
        bounds: { ...BOUNDS, measures: MEASURES_MAX, group_by: GROUP_BY_MAX, filters: FILTERS_MAX, top: TOP_MAX },
      },
    }),
  });
}

function viewOf(name: View) {
  const { measures, dimensions, numbers, attributes } = SOURCES[name];
  const aggsOf = (aggs: Partial<Record<Agg, unknown>>): Agg[] => AGGS.filter((agg) => agg in aggs);
  return {
    name,
    measures: Object.entries(measures).map(([measure, { description, unit, aggs }]) => ({
      name: measure,
      description,
      unit,
      aggs: aggsOf(aggs),
    })),
    dimensions: Object.entries(dimensions).map(([dimension, { description }]) => ({ name: dimension, description })),
    filters: Object.keys(numbers),
    attributes,
    granularities: GRANULARITIES.filter((one) => name !== 'usage' || (one !== 'minute' && one !== 'hour')),
  };
}
