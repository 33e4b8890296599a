// Calls a declared route within the process, for callers that speak another protocol than REST. Takes
// the route, its input and the caller; returns data and meta. The call passes the same checks as a
// request: permission and grants, the organization of the path, shapes, audit of mutations.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { audited, NO_NOTES } from './audited.ts';
import type { OrgCredential } from './credential.ts';
import type { EdgeDeps } from './mount.ts';
import { fieldOf, permitRoute } from './permit_route.ts';
import type { Route } from './route.ts';
import { parsePart } from './validate.ts';

export interface RouteInput {
  params?: Readonly<Record<string, string>>;
  /** Query parameters as they are in a URL. */
  query?: Readonly<Record<string, string | string[]>>;
  body?: unknown;
}

export interface RouteCall {
  credential: OrgCredential;
  request_id: string;
  /** Request and response of the other protocol. Routes that stream cannot be called. */
  req: IncomingMessage;
  res: ServerResponse;
  signal: AbortSignal;
}

export interface RouteAnswer {
  data: unknown;
  meta: Readonly<Record<string, unknown>>;
}

/** @throws ApiError as the route does */
export async function callRoute(
  route: Route,
  { params = {}, query = {}, body }: RouteInput,
  call: RouteCall,
  { auth, audit }: Pick<EdgeDeps, 'auth' | 'audit'>,
): Promise<RouteAnswer> {
  const { credential, req } = call;
  const asked = { method: route.method.toUpperCase(), headers: req.headers, pathOrg: params['org_id'] };
  const named = { params, query, field: (name: string) => fieldOf(body, name) };
  permitRoute(route, { credential, asked, named }, auth);
  const { result } = await audited(
    route,
    {
      ...call,
      org_id: credential.org_id,
      params: parsePart(route.params, params),
      query: parsePart(route.query, query),
      body: route.body === null ? undefined : parsePart(route.body, body ?? {}),
      audit: NO_NOTES,
    },
    audit,
  );
  if (!('data' in result)) throw new Error(`${route.operation_id} has no data to return`);
  return { data: result.data, meta: result.meta ?? {} };
}
