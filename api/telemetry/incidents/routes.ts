// Routes of incidents: the list, one, and resolving one by hand.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type IncidentsDeps, listIncidents, resolveIncident, showIncident } from './incidents.ts';
import { incidentDetail, incidentItem, incidentParams, incidentsQuery } from './schema.ts';

const TAG = 'Incidents';

export function incidentRoutes(deps: IncidentsDeps): Route[] {
  return [listIncidentsRoute(deps), getIncidentRoute(deps), resolveIncidentRoute(deps)];
}

function listIncidentsRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/incidents',
    operation_id: 'listIncidents',
    summary: 'Incidents, newest first',
    description:
      'Five failing traces of one agent, root span and error within 15 minutes are an incident; it is over after 30 minutes without another one. Numbers, ids and quoted parts of an error make no difference.',
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
    summary: 'One incident, with its newest traces',
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

function resolveIncidentRoute(deps: IncidentsDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/v1/incidents/:incident_id/resolve',
    operation_id: 'resolveIncident',
    summary: 'Resolve an incident by hand',
    description:
      'What fails from now on is none of it: five more open another one. An incident that is resolved already stays as it is.',
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
