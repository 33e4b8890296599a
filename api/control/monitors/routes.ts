// Routes of monitors: create, list, get, change, delete.
import { z } from 'zod';
import { HISTORY_MAX } from '../../../pipeline/domain/monitors/evaluate.ts';
import { pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import {
  changeMonitor,
  createMonitor,
  deleteMonitor,
  getMonitor,
  itemOf,
  listChanges,
  listMonitors,
  MONITORS_ORG_MAX,
  type MonitorsDeps,
} from './monitors.ts';
import { PREVIEWS_ORG_MAX, previewMonitor } from './preview.ts';
import {
  createBody,
  deletedMonitor,
  listQuery,
  monitorChange,
  monitorItem,
  monitorParams,
  monitorPreview,
  patchBody,
  previewBody,
} from './schema.ts';

const TAG = 'Monitors';
const ROOT = '/v1/monitors';
const ONE = `${ROOT}/:monitor_id`;

export function monitorRoutes(deps: MonitorsDeps): Route[] {
  return [
    createMonitorRoute(deps),
    listMonitorsRoute(deps),
    previewMonitorRoute(deps),
    getMonitorRoute(deps),
    listMonitorChangesRoute(deps),
    changeMonitorRoute(deps),
    deleteMonitorRoute(deps),
  ];
}

function createMonitorRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createMonitor',
    summary: 'Create a monitor',
    description: `A monitor evaluates an analytics query every minute over the last \`window_minutes\` and compares its one measure with a threshold. With \`group_by\`, each value of the dimension has a state of its own; the 100 most extreme groups are evaluated. A change fires \`monitor.alerting\` or \`monitor.resolved\` once, to the endpoints that subscribe to it and to the channels of the monitor. A monitor that cannot be evaluated has the state \`error\` and does not alert. A query of costs also needs \`costs:read\`. An organization can have at most ${MONITORS_ORG_MAX} monitors; past that, the request fails with 409 \`conflict\`.`,
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'monitor.create', target: 'monitor' },
    body: createBody,
    example: {
      name: 'Slow model calls',
      query: {
        view: 'spans',
        measures: [{ measure: 'duration_ms', agg: 'p95' }],
        filters: [{ field: 'kind', op: 'eq', value: 'llm' }],
      },
      group_by: ['model'],
      window_minutes: 15,
      threshold: { above: 8000 },
      for_minutes: 5,
      channels: [{ type: 'email', to: ['oncall@example.com'] }],
      severity: 'critical',
    },
    status: 201,
    response: monitorItem,
    errors: ['conflict'],
    handler: async ({ credential, body, audit }) => {
      const monitor = await createMonitor(deps, credential, body);
      audit.target(monitor.monitor_id);
      const { org_id: _org, monitor_id: _id, created_at: _created, updated_at: _updated, ...changes } = monitor;
      audit.changes(changes);
      return { data: itemOf(deps, monitor) };
    },
  });
}

function listMonitorsRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listMonitors',
    summary: 'List monitors',
    description: "Returns the organization's monitors with their states, by name.",
    tag: TAG,
    permission: 'traces:read',
    query: listQuery,
    response: z.array(monitorItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => listMonitors(deps, org_id, query),
  });
}

function getMonitorRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getMonitor',
    summary: 'Get a monitor',
    description: 'Returns one monitor with the state of each of its groups.',
    tag: TAG,
    permission: 'traces:read',
    params: monitorParams,
    response: monitorItem,
    errors: ['not_found'],
    handler: ({ org_id, params }) => ({ data: itemOf(deps, getMonitor(deps, org_id, params.monitor_id)) }),
  });
}

function previewMonitorRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ROOT}/preview`,
    operation_id: 'previewMonitor',
    summary: 'Preview a monitor',
    description: `Evaluates a definition over the last \`hours\` and returns the values of its most extreme groups and when it would have alerted. It is evaluated every \`step_minutes\`, which are more than one where the time or the window is long, so a preview can miss what is shorter. Nothing is stored and nobody is notified. An organization may run ${PREVIEWS_ORG_MAX} previews at a time. A query of costs also needs \`costs:read\`.`,
    tag: TAG,
    permission: 'traces:read',
    audit: null,
    body: previewBody,
    example: {
      query: { view: 'spans', measures: [{ measure: 'duration_ms', agg: 'p95' }] },
      group_by: ['model'],
      window_minutes: 15,
      threshold: { above: 8000 },
      hours: 24,
    },
    response: monitorPreview,
    errors: ['rate_limited'],
    handler: async ({ credential, body, signal }) => ({ data: await previewMonitor(deps, credential, body, signal) }),
  });
}

function listMonitorChangesRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/changes`,
    operation_id: 'listMonitorChanges',
    summary: 'List the changes of a monitor',
    description: `Returns when groups of the monitor began and ended to alert, the newest first. The last ${HISTORY_MAX} changes are kept.`,
    tag: TAG,
    permission: 'traces:read',
    params: monitorParams,
    query: pageQuery,
    response: z.array(monitorChange),
    meta: pageMeta,
    errors: ['not_found'],
    handler: ({ org_id, params, query }) => listChanges(deps, org_id, params.monitor_id, query),
  });
}

function changeMonitorRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'patch',
    path: ONE,
    operation_id: 'changeMonitor',
    summary: 'Update a monitor',
    description:
      'Changes the fields that are given. Another query or dimension starts the states over and resolves what was alerting, and so does `enabled` false. `muted_until` holds notifications of new alerts back until then.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'monitor.update', target: 'monitor', param: 'monitor_id' },
    params: monitorParams,
    body: patchBody,
    example: { threshold: { above: 10000 }, enabled: true },
    response: monitorItem,
    errors: ['not_found'],
    handler: async ({ credential, params, body, audit }) => {
      const { monitor, changes } = await changeMonitor(deps, credential, params.monitor_id, body);
      audit.changes(changes);
      return { data: itemOf(deps, monitor) };
    },
  });
}

function deleteMonitorRoute(deps: MonitorsDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteMonitor',
    summary: 'Delete a monitor',
    description: 'Deletes the monitor. What it had alerting is resolved within a minute.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'monitor.delete', target: 'monitor', param: 'monitor_id' },
    params: monitorParams,
    response: deletedMonitor,
    errors: ['not_found', 'conflict'],
    handler: async ({ org_id, params, audit }) => {
      const { name } = await deleteMonitor(deps, org_id, params.monitor_id);
      audit.changes({ name });
      return { data: { monitor_id: params.monitor_id, deleted: true as const } };
    },
  });
}
