// Routes of sessions and end users: lists with the totals of their traces.
import { z } from 'zod';
import { cursorMeta } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { showEndUser, showSession } from './one.ts';
import {
  groupsQuery,
  sessionDetail,
  sessionItem,
  sessionParams,
  turnsQuery,
  userDetail,
  userItem,
  userParams,
  userQuery,
} from './schema.ts';
import { listGroups, type SessionsDeps } from './sessions.ts';

const TAG = 'Traces';

export function sessionListRoutes(deps: SessionsDeps): Route[] {
  return [listSessionsRoute(deps), getSessionRoute(deps), listEndUsersRoute(deps), getEndUserRoute(deps)];
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

function getSessionRoute(deps: SessionsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/sessions/:session_id',
    operation_id: 'getSessionDetail',
    summary: 'Get a session',
    description:
      'Returns the totals of one session and its turns, oldest first. A turn is one trace with what the user said and what was answered, its outcome, cost and scores.',
    tag: TAG,
    permission: 'traces:read',
    params: sessionParams,
    query: turnsQuery,
    response: sessionDetail,
    meta: cursorMeta,
    errors: ['not_found'],
    handler: ({ org_id, params, query, signal }) =>
      showSession(deps, { org_id, session_id: params.session_id }, query, signal),
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

function getEndUserRoute(deps: SessionsDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/v1/users/:user_id',
    operation_id: 'getEndUser',
    summary: 'Get an end user',
    description:
      'Returns the totals of one end user, traces, sessions and cost of each of the last days, and the turns of all sessions, oldest first. `GET /v1/sessions?user_id=` lists the sessions.',
    tag: TAG,
    permission: 'traces:read',
    params: userParams,
    query: userQuery,
    response: userDetail,
    meta: cursorMeta,
    errors: ['not_found'],
    handler: ({ org_id, params, query, signal }) =>
      showEndUser(deps, { org_id, user_id: params.user_id }, query, signal),
  });
}
