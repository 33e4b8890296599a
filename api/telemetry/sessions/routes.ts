// Routes of sessions and end users: lists with the totals of their traces.
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
    summary: 'List sessions',
    description:
      'Returns sessions, the last seen first. A session is the `session_id` of app events, or `attributes.session_id` or `attributes["session.id"]` of others. A trace belongs to the session named by its first span that names one. `GET /v1/traces?session_id=` lists the traces of a session.',
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
    summary: 'List end users',
    description:
      'Returns the users of the applications that send telemetry, the last seen first. An end user is the `user_id` of app events, or `attributes.user_id`, `attributes["user.id"]` or `attributes["enduser.id"]` of others. The members of the organization are listed by `GET /orgs/{org_id}/members`.',
    tag: TAG,
    permission: 'traces:read',
    query: groupsQuery,
    response: z.array(userItem),
    meta: cursorMeta,
    handler: ({ org_id, query, signal }) =>
      listGroups(deps, { org_id, by: 'user', query, signal }, (user_id, sums) => ({ user_id, ...sums })),
  });
}
