// Checks that a caller may call a route: by role, by the scope of a key, or by a grant on a resource
// that the request names in its path, query or body.
import { type AuthDeps, type AuthRequest, permit, type Resource } from './auth.ts';
import { type Credential, may } from './credential.ts';
import { type Permission, PERMISSIONS } from './permissions.ts';
import type { ResourceName, Route } from './route.ts';

/** Parts of a request that may name resources. */
export interface NamedParts {
  params: Readonly<Record<string, unknown>>;
  query: Readonly<Record<string, unknown>>;
  /** Returns a field of the body; undefined where the body has none. */
  field: (name: string) => unknown;
}

export interface RouteCaller {
  credential: Credential;
  asked: AuthRequest;
  named: NamedParts;
}

/**
 * Checks that the caller may call the route.
 * @throws ApiError cross_org_access, forbidden
 */
export function permitRoute(route: Route, { credential, asked, named }: RouteCaller, auth: AuthDeps): void {
  const resources = namesOf(route).flatMap((name) => resourceOf(name, named, credential) ?? []);
  permit(route.access, credential, { ...asked, resources }, auth);
  const { grant_needs } = route;
  if (grant_needs === undefined || !isGrantNeeded(route, credential)) return;
  const resource = resourceOf(grant_needs.resource, named, credential);
  permit(grant_needs.permission, credential, { ...asked, resources: resource === undefined ? [] : [resource] }, auth);
}

const namesOf = ({ resource = [] }: Route): readonly ResourceName[] => [resource].flat();

/** Returns true if nothing but a grant can admit this caller. */
const isGrantNeeded = ({ access }: Route, credential: Credential): boolean =>
  credential.kind === 'user' && isPermission(access) && !may(credential, access);

/** Returns true if only a grant on what the body names can admit this caller. */
export const isGrantInBody = (route: Route, credential: Credential): boolean =>
  namesOf(route).some((name) => 'body' in name) && isGrantNeeded(route, credential);

const isPermission = (access: Route['access']): access is Permission => Object.hasOwn(PERMISSIONS, access);

/** Returns the resource that a request names; undefined where it names none. */
function resourceOf(resource: ResourceName, named: NamedParts, credential: Credential): Resource | undefined {
  let id: unknown;
  if ('param' in resource) id = named.params[resource.param];
  else if ('query' in resource) id = named.query[resource.query];
  else if ('find' in resource) id = 'org_id' in credential ? resource.find(credential.org_id, named.params) : undefined;
  else id = named.field(resource.body);
  return typeof id === 'string' ? { type: resource.type, id } : undefined;
}

/** Returns a field of a parsed body. */
export function fieldOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null && Object.hasOwn(body, name)
    ? (body as Record<string, unknown>)[name]
    : undefined;
}
