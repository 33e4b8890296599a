// Routes of a budget's alerts. They stand under two paths, as clients know both.
import { fromTo } from '../../http/changes.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AlertsDeps, putAlerts, readAlerts, testAlerts } from './alerts.ts';
import { alerts, alertsBody, orgParams, sentTest } from './schema.ts';

const PLACES = [
  { path: '/orgs/:org_id/budget/alerts', suffix: '' },
  { path: '/v1/budgets/:org_id/alerts', suffix: 'V1' },
] as const;

export function alertRoutes(deps: AlertsDeps): Route[] {
  return PLACES.flatMap(({ path, suffix }) => [
    defineRoute({
      method: 'get',
      path,
      operation_id: `getBudgetAlerts${suffix}`,
      summary: 'Which thresholds of the budget are told, and to whom',
      tag: 'Budgets',
      permission: 'costs:read',
      params: orgParams,
      response: alerts,
      handler: (ctx) => ({ data: readAlerts(deps, ctx.org_id) }),
    }),
    defineRoute({
      method: 'post',
      path,
      operation_id: `putBudgetAlerts${suffix}`,
      summary: 'Set the alerts of the budget',
      description:
        'A threshold is told once in a period when the use reaches it, and once when the daily run-rate will reach it before the period ends. Mails go to the owner of the org; the webhook gets budget.threshold_breach.',
      tag: 'Budgets',
      permission: 'budgets:write',
      status: 201,
      secret: true,
      params: orgParams,
      body: alertsBody,
      example: { channels: ['email'], thresholds: [{ resource: 'tokens', percent: 80, severity: 'warning' }] },
      response: alerts,
      errors: ['invalid_threshold'],
      audit: { action: 'budget.alerts_update', target: 'alert_config', param: 'org_id', sets: true },
      handler: async (ctx) => {
        const { before, after } = await putAlerts(deps, ctx.org_id, ctx.body);
        ctx.audit.changes(fromTo(before, after, ['channels', 'thresholds', 'webhook_url']));
        return { data: after };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${path}/test`,
      operation_id: `testBudgetAlerts${suffix}`,
      summary: 'Send a test alert through every channel',
      tag: 'Budgets',
      permission: 'budgets:write',
      params: orgParams,
      response: sentTest,
      errors: ['conflict'],
      audit: null,
      handler: async (ctx) => ({ data: await testAlerts(deps, ctx.org_id) }),
    }),
  ]);
}
