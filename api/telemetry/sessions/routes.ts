// Routes of sessions and end users: which there are, and what their traces come to.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { groupsQuery, sessionItem, userItem } from './schema.ts';
import { listGroups, type SessionsDeps } from './sessions.ts';

const TAG = 'Traces';

export function sessionListRoutes(deps: SessionsDeps): Route[] {
  return [listSessionsRoute(deps), listEndUsersRoute(deps)];
}

function listSessionsRoute(deps: SessionsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/sessions',
    operation_id: 'listSessions',
    summary: 'Sessions, the last seen first',
    description:
      'A session is what spans name as theirs: session_id of app events, attributes.session_id or attributes["session.id"] of others. A trace belongs to the session that its first such span names. GET /v1/traces?session_id= lists the traces of one.',
    tag: TAG,
    permission: 'traces:read',
    query: groupsQuery,
    response: z.array(sessionItem),
    meta: cursorMeta,
    handler: ({ org_id, query, signal }) =>
      listGroups(deps, { org_id, by: 'session', query, signal }, (session_id, sums) => ({ session_id, ...sums })),
  });
}

function listEndUsersRoute(deps: SessionsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/users',
    operation_id: 'listEndUsers',
    summary: 'End users, the last seen first',
    description:
      'Users of the applications that send telemetry, as spans name them: user_id of app events, attributes.user_id, attributes["user.id"] or attributes["enduser.id"] of others. Members of the org are elsewhere: GET /orgs/{org_id}/members.',
    tag: TAG,
    permission: 'traces:read',
    query: groupsQuery,
    response: z.array(userItem),
    meta: cursorMeta,
    handler: ({ org_id, query, signal }) =>
      listGroups(deps, { org_id, by: 'user', query, signal }, (user_id, sums) => ({ user_id, ...sums })),
  });
}
