// Routes of costs: summary, forecast, anomalies, outcomes by department, custom prices and the
// anomaly threshold.
import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { picoToUsd, usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { anomalyConfig, anomalyConfigChange } from '../../../schemas/records/cost_config.ts';
import { prices } from '../../../schemas/records/prices.ts';
import { readAnomalies } from '../../../sql/stores/costs.ts';
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { getBuiltInPricesRoute } from './built_in_prices.ts';
import { previewAnomalies } from './anomaly_preview.ts';
import type { CostDeps } from './costs.ts';
import { readForecast } from './forecast.ts';
import { readRollup } from './outcomes.ts';
import {
  anomaly,
  type AnomalyItem,
  anomalyPreview,
  anomalyPreviewQuery,
  forecast,
  forecastQuery,
  outcomes,
  outcomesQuery,
  series,
  seriesQuery,
  summary,
  summaryMeta,
  summaryQuery,
  unpriced,
  unpricedQuery,
} from './schema.ts';
import { readSeries } from './series.ts';
import { readSummary } from './summary.ts';
import { listUnpriced } from './unpriced.ts';

const TAG = 'Costs';

export function costRoutes(deps: CostDeps): Route[] {
  return [
    getCostSummaryRoute(deps),
    getCostSeriesRoute(deps),
    getUnpricedModelsRoute(deps),
    getCostForecastRoute(deps),
    getOrgCostForecastRoute(deps),
    listAnomaliesRoute(deps),
    previewAnomaliesRoute(deps),
    getCostOutcomesRoute(deps),
    getPricesRoute(deps),
    getBuiltInPricesRoute(deps),
    setPricesRoute(deps),
    getAnomalyConfigRoute(deps),
    changeAnomalyConfigRoute(deps),
  ];
}

function getCostSummaryRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/summary',
    operation_id: 'getCostSummary',
    summary: 'Get a cost summary',
    description:
      'Returns the cost of the last days by day, by model and by one further dimension. A cost counts on the day, UTC, on which its event began, and stays when its spans are deleted.',
    tag: TAG,
    permission: 'costs:read',
    query: summaryQuery,
    response: summary,
    meta: summaryMeta,
    handler: ({ org_id, query, signal }) => readSummary(deps, org_id, query, signal),
  });
}

function getCostSeriesRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/series',
    operation_id: 'getCostSeries',
    summary: 'Get costs by day and group',
    description:
      'Returns cost and tokens of each of the last days by one or two dimensions, for the 12 costliest groups and for all others together, with the sums of the period of the same length before. A cost counts on the day, UTC, on which its event began.',
    tag: TAG,
    permission: 'costs:read',
    query: seriesQuery,
    response: series,
    handler: async ({ org_id, query, signal }) => ({ data: await readSeries(deps, org_id, query, signal) }),
  });
}

function getUnpricedModelsRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/unpriced',
    operation_id: 'getUnpricedModels',
    summary: 'List models without a price',
    description:
      'Returns the models whose calls of the last days have the cost 0 because no price is known. `PUT /orgs/{org_id}/prices` sets prices for calls that arrive afterwards.',
    tag: TAG,
    permission: 'costs:read',
    query: unpricedQuery,
    response: unpriced,
    handler: async ({ org_id, query, signal }) => ({ data: await listUnpriced(deps, org_id, query.days, signal) }),
  });
}

/** The forecast is served under two paths. */
const FORECAST = {
  summary: 'Forecast costs',
  description:
    'Fits a least-squares line to the daily totals of up to 90 whole days before today, and returns its predictions with their 95% prediction interval. No value is below 0.',
  tag: TAG,
  permission: 'costs:read',
  query: forecastQuery,
  response: forecast,
} as const;

function getCostForecastRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/forecast',
    operation_id: 'getCostForecast',
    ...FORECAST,
    handler: async ({ org_id, query, signal }) => ({ data: await readForecast(deps, org_id, query.days, signal) }),
  });
}

function getOrgCostForecastRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/cost/forecast',
    operation_id: 'getOrgCostForecast',
    params: orgParams,
    ...FORECAST,
    handler: async ({ org_id, query, signal }) => ({ data: await readForecast(deps, org_id, query.days, signal) }),
  });
}

function listAnomaliesRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/anomalies',
    operation_id: 'listAnomalies',
    summary: 'List cost anomalies',
    description:
      'Returns the days whose total cost is an outlier, newest first. The service compares the z-score of a day against the days before it: every hour for today, every night for yesterday.',
    tag: TAG,
    permission: 'costs:read',
    query: pageQuery,
    response: z.array(anomaly),
    meta: pageMeta,
    handler: async ({ org_id, query, signal }) => {
      const { data, meta } = pageOf(await readAnomalies(deps.clickhouse, { org_id }, { signal }), query);
      return { data: data.map(anomalyItem), meta };
    },
  });
}

function previewAnomaliesRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/anomalies/preview',
    operation_id: 'previewAnomalies',
    summary: 'Preview the cost-anomaly threshold',
    description:
      'Returns the days that a threshold and a look-back would have marked, from the costs as they are now. Nothing is changed. `PUT /orgs/{org_id}/cost/anomaly-config` sets both.',
    tag: TAG,
    permission: 'costs:read',
    query: anomalyPreviewQuery,
    response: anomalyPreview,
    handler: async ({ org_id, query, signal }) => ({ data: await previewAnomalies(deps, org_id, query, signal) }),
  });
}

function getCostOutcomesRoute(deps: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/cost/outcomes',
    operation_id: 'getCostOutcomes',
    summary: 'Get costs and outcomes by department',
    description:
      'Returns what each department spent and achieved. Outcomes are the sums of `attributes.outcomes` of events with `attributes.department`, or of an agent whose metadata names a department. Their value is the formula `value_of_outcomes` of the policy, or the one of the query, which is not stored.',
    tag: TAG,
    permission: 'costs:read',
    query: outcomesQuery,
    response: outcomes,
    handler: async ({ org_id, query, signal }) => ({ data: await readRollup(deps, org_id, query, signal) }),
  });
}

function getPricesRoute({ settings }: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/prices',
    operation_id: 'getPrices',
    summary: 'Get custom prices',
    description: 'Returns the prices that the organization set for models.',
    tag: TAG,
    permission: 'costs:read',
    params: orgParams,
    response: prices,
    handler: ({ org_id }) => ({ data: settings.pricesOf(org_id) }),
  });
}

function setPricesRoute({ settings }: CostDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/prices',
    operation_id: 'setPrices',
    summary: 'Set custom prices',
    description:
      'Replaces the whole list. New prices apply to calls that arrive afterwards, each by the price of its own day; stored calls keep the price that was used.',
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'prices.update', target: 'prices', param: 'org_id' },
    params: orgParams,
    body: prices,
    example: {
      prices: [{ model: 'our-llama', input_usd_per_mtok: 0.2, output_usd_per_mtok: 0.6, from: '2026-01-01' }],
    },
    response: prices,
    handler: async ({ org_id, body, audit }) => {
      const { before } = await settings.setPrices(org_id, body);
      audit.changes(fromTo(before, body, ['prices']));
      return { data: body };
    },
  });
}

function getAnomalyConfigRoute({ settings }: CostDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/cost/anomaly-config',
    operation_id: 'getAnomalyConfig',
    summary: 'Get the cost-anomaly threshold',
    description:
      'Returns the z-score at which the cost of a day is an anomaly, and the number of days it is compared with.',
    tag: TAG,
    permission: 'costs:read',
    params: orgParams,
    response: anomalyConfig,
    handler: ({ org_id }) => ({ data: settings.anomalyConfigOf(org_id) }),
  });
}

function changeAnomalyConfigRoute({ settings }: CostDeps): Route {
  return defineRoute({
    method: 'put',
    path: '/orgs/:org_id/cost/anomaly-config',
    operation_id: 'changeAnomalyConfig',
    summary: 'Update the cost-anomaly threshold',
    description: 'Changes the fields that are given.',
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'anomaly_config.update', target: 'anomaly_config', param: 'org_id' },
    params: orgParams,
    body: anomalyConfigChange,
    example: { z_threshold: 3, lookback_days: 30 },
    response: anomalyConfig,
    handler: async ({ org_id, body, audit }) => {
      const { before, after } = await settings.changeAnomalyConfig(org_id, body);
      if (isDeepStrictEqual(before, after)) audit.nothing();
      else audit.changes({ from: before, to: after });
      return { data: after };
    },
  });
}

function anomalyItem(row: Awaited<ReturnType<typeof readAnomalies>>[number]): AnomalyItem {
  return {
    anomaly_id: row.anomaly_id,
    date: row.date,
    detected_at: row.detected_at,
    kind: 'z_score',
    z: row.z,
    expected_usd: picoToUsd(usdToPico(row.expected)),
    actual_usd: picoToUsd(usdToPico(row.actual)),
    attributed_to: { model: row.model === '' ? null : row.model, agent_id: row.agent_id === '' ? null : row.agent_id },
  };
}
