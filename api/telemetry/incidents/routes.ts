// Routes of incidents: list, get, resolve.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type IncidentsDeps, listIncidents, resolveIncident, showIncident } from './incidents.ts';
import { incidentDetail, incidentItem, incidentParams, incidentSeries, incidentsQuery } from './schema.ts';
import { readSeries } from './series.ts';

const TAG = 'Incidents';

export function incidentRoutes(deps: IncidentsDeps): Route[] {
  return [listIncidentsRoute(deps), getIncidentRoute(deps), getIncidentSeriesRoute(deps), resolveIncidentRoute(deps)];
}

function listIncidentsRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/incidents',
    operation_id: 'listIncidents',
    summary: 'List incidents',
    description:
      'Returns incidents, newest first. Five failing traces of one agent, root span and error within 15 minutes open an incident; 30 minutes without another one resolve it. Numbers, ids and quoted parts of the error are ignored when errors are compared.',
    tag: TAG,
    permission: 'traces:read',
    query: incidentsQuery,
    response: z.array(incidentItem),
    meta: cursorMeta,
    handler: ({ org_id, query, signal }) => listIncidents(deps, org_id, query, signal),
  });
}

function getIncidentRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/incidents/:incident_id',
    operation_id: 'getIncident',
    summary: 'Get an incident',
    description: 'Returns one incident with the ids of its newest traces.',
    tag: TAG,
    permission: 'traces:read',
    params: incidentParams,
    response: incidentDetail,
    errors: ['incident_not_found'],
    handler: async ({ org_id, params, signal }) => ({
      data: await showIncident(deps, org_id, params.incident_id, signal),
    }),
  });
}

function getIncidentSeriesRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/incidents/:incident_id/series',
    operation_id: 'getIncidentSeries',
    summary: 'Get the traces of an incident over time',
    description:
      'Returns the number of failing traces by time, during the incident and before it: those of the cluster (same agent, root span and error), and those of them that belong to the incident. A trace counts at the time at which it failed; traces are counted for 90 days.',
    tag: TAG,
    permission: 'traces:read',
    params: incidentParams,
    response: incidentSeries,
    errors: ['incident_not_found'],
    handler: async ({ org_id, params, signal }) => ({
      data: await readSeries(deps, org_id, params.incident_id, signal),
    }),
  });
}

function resolveIncidentRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/incidents/:incident_id/resolve',
    operation_id: 'resolveIncident',
    summary: 'Resolve an incident',
    description:
      'Resolves the incident now. Later failures do not count towards it: five of them open a new incident. Resolving a resolved incident changes nothing.',
    tag: TAG,
    permission: 'incidents:resolve',
    audit: { action: 'incident.resolve', target: 'incident', param: 'incident_id' },
    params: incidentParams,
    response: incidentDetail,
    errors: ['incident_not_found', 'upstream_unavailable'],
    handler: async ({ org_id, params, credential, audit, signal }) => {
      const by = credential.kind === 'api_key' ? credential.key_id : credential.user_id;
      const { incident, changed } = await resolveIncident(deps, org_id, params.incident_id, by, signal);
      if (changed) audit.changes({ status: 'resolved', trace_count: incident.trace_count });
      else audit.nothing();
      return { data: incident };
    },
  });
}
