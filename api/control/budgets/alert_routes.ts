// Routes of the budget alerts: get, set and test. Each is served under two paths, which are both
// public contract.
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AlertsDeps, putAlerts, readAlerts, testAlerts } from './alerts.ts';
import { alerts, alertsBody, sentTest } from './schema.ts';

const TAG = 'Budgets';

interface Place {
  path: string;
  /** Suffix that makes the operation ids unique. */
  suffix: string;
}

const PLACES: readonly Place[] = [
  { path: '/orgs/:org_id/budget/alerts', suffix: '' },
  { path: '/v1/budgets/:org_id/alerts', suffix: 'V1' },
];

export function alertRoutes(deps: AlertsDeps): Route[] {
  return PLACES.flatMap((place) => [
    getBudgetAlertsRoute(place, deps),
    putBudgetAlertsRoute(place, deps),
    testBudgetAlertsRoute(place, deps),
  ]);
}

function getBudgetAlertsRoute({ path, suffix }: Place, deps: AlertsDeps): Route {
  return defineRoute({
    method: 'get',
    path,
    operation_id: `getBudgetAlerts${suffix}`,
    summary: 'Get budget alert settings',
    description:
      'Returns the thresholds, channels and webhook address of the budget alerts. Before the first setting, the lists are empty and `updated_at` is `null`.',
    tag: TAG,
    permission: 'costs:read',
    params: orgParams,
    response: alerts,
    handler: ({ org_id }) => ({ data: readAlerts(deps, org_id) }),
  });
}

function putBudgetAlertsRoute({ path, suffix }: Place, deps: AlertsDeps): Route {
  return defineRoute({
    method: 'post',
    path,
    operation_id: `putBudgetAlerts${suffix}`,
    summary: 'Set budget alert settings',
    description:
      'Replaces the alert settings. An alert is sent once per period and threshold when use reaches the threshold, and once when the daily run rate projects that use will reach it before the period ends. Mail goes to the owner of the organization; the webhook receives `budget.threshold_breach`, signed with a `secret` that is shown only when `webhook_url` is new. A `percent` outside 0 < p < 100 returns 422 `invalid_threshold`.',
    tag: TAG,
    permission: 'budgets:write',
    audit: { action: 'budget.alerts_update', target: 'alert_config', param: 'org_id', sets: true },
    params: orgParams,
    body: alertsBody,
    example: { channels: ['email'], thresholds: [{ resource: 'tokens', percent: 80, severity: 'warning' }] },
    status: 201,
    response: alerts,
    secret: true,
    errors: ['invalid_threshold'],
    handler: async ({ org_id, body, audit }) => {
      const { before, after } = await putAlerts(deps, org_id, body);
      audit.changes(fromTo(before, after, ['channels', 'thresholds', 'webhook_url']));
      return { data: after };
    },
  });
}

function testBudgetAlertsRoute({ path, suffix }: Place, deps: AlertsDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${path}/test`,
    operation_id: `testBudgetAlerts${suffix}`,
    summary: 'Send a test alert',
    description:
      'Queues one test alert for every configured channel. Returns 409 `conflict` if no channel is configured.',
    tag: TAG,
    permission: 'budgets:write',
    audit: null,
    params: orgParams,
    response: sentTest,
    errors: ['conflict'],
    handler: async ({ org_id }) => ({ data: await testAlerts(deps, org_id) }),
  });
}
