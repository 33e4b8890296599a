// Routes of a budget's alerts. They stand under two paths, as clients know both.
import { fromTo } from '../../http/changes.ts';
import { orgParams } from '../../http/common_params.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AlertsDeps, putAlerts, readAlerts, testAlerts } from './alerts.ts';
import { alerts, alertsBody, sentTest } from './schema.ts';

const TAG = 'Budgets';

interface Place {
  path: string;
  /** Distinguishes the operation ids. */
  suffix: string;
}

/** Both paths are public contract. */
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
    summary: 'Which thresholds of the budget are told, and to whom',
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
    summary: 'Set the alerts of the budget',
    description:
      'A threshold is told once in a period when the use reaches it, and once when the daily run-rate will reach it before the period ends. Mails go to the owner of the org; the webhook gets budget.threshold_breach.',
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
    summary: 'Send a test alert through every channel',
    tag: TAG,
    permission: 'budgets:write',
    audit: null,
    params: orgParams,
    response: sentTest,
    errors: ['conflict'],
    handler: async ({ org_id }) => ({ data: await testAlerts(deps, org_id) }),
  });
}
