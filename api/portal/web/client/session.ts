// The person's session: who they are, their organizations and what they may do in each. Screens ask
// `can('judges:write')` and never compare roles.
import { useQuery } from '@tanstack/react-query';
import { createContext, use } from 'react';
import { type Answer, apiQuery, get } from './api.ts';
import { personLogin } from './login_wait.ts';
import { queryClient, readAhead } from './query_client.ts';

export type Session = Answer<'/v1/session'>['data'];
export type SessionOrg = Session['orgs'][number];

/** The organization of a screen, and the rights of the person in it. */
export interface Organization {
  org_id: string;
  name: string;
  /** Returns true if the person holds the permission in this organization. */
  can: (permission: string) => boolean;
}

const SESSION = {
  ...apiQuery(null, '/v1/session', {}),
  // A person without a session is sent to the login page; the dialog is for a session that ends later.
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const session = await get(null, '/v1/session', {}, { signal, throw401: true });
    personLogin.seen();
    return session;
  },
  staleTime: 60_000,
};

/** Returns the session; its error has the status 401 for somebody who is not logged in. */
export function useSession() {
  return useQuery({ ...SESSION, select: ({ data }) => data });
}

/** Starts to load the session before the first render. */
export function prefetchSession(): void {
  readAhead(queryClient.query(SESSION));
}

/** Loads the session again, after a login. */
export async function refreshSession(): Promise<Session> {
  await queryClient.invalidateQueries({ queryKey: SESSION.queryKey });
  return (await queryClient.query(SESSION)).data;
}

/** Bounds on waiting for a change to reach the process that answers: at most five seconds. */
const CHANGE_TRIES_MAX = 20;
const CHANGE_PAUSE_MS = 250;

/**
 * Loads the session again until it shows a change that was just made, because another process may answer that has
 * not seen it yet. Resolves in any case after the bound.
 */
export async function refreshSessionUntil(shows: (session: Session) => boolean): Promise<void> {
  for (let tries = 1; !shows(await refreshSession()) && tries < CHANGE_TRIES_MAX; tries += 1)
    await new Promise((resolve) => setTimeout(resolve, CHANGE_PAUSE_MS));
}

/**
 * Runs what needs a permission once the session is known, and not at all for a person who lacks the permission: a
 * request ahead of a page must not be refused.
 */
export async function whenPermitted(org_id: string, permission: string, run: () => void): Promise<void> {
  const { data } = await queryClient.query(SESSION);
  const org = data.orgs.find((one) => one.org_id === org_id);
  if (org !== undefined && organizationOf(org).can(permission)) run();
}

/** Returns an organization of the session with the person's permissions in it. */
export function organizationOf(org: SessionOrg): Organization {
  const held = new Set<string>(org.permissions);
  return { org_id: org.org_id, name: org.name, can: (permission) => held.has(permission) };
}

export const OrganizationContext = createContext<Organization | null>(null);

/**
 * Returns the organization of the address.
 * @throws Error outside of a page of an organization
 */
export function useOrganization(): Organization {
  const organization = use(OrganizationContext);
  if (organization === null) throw new Error('useOrganization needs a page under /o/{org_id}');
  return organization;
}
