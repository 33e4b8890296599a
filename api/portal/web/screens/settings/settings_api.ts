// Reads that several tabs of the settings share, and the words of permissions.
import { useQuery } from '@tanstack/react-query';
import { type Answer, apiQuery } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { FRESH } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';

export type PermissionItem = Answer<'/orgs/{org_id}/permissions'>['data'][number];
export type Role = PermissionItem['roles'][number];

/** Returns every permission; the list changes with a release only. */
export function usePermissions() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}/permissions', { path: { org_id } }),
    staleTime: FRESH.complete_trace,
    select: ({ data }) => data,
  });
}

export function useOrgRecord() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, '/orgs/{org_id}', { path: { org_id } }),
    staleTime: FRESH.registry,
    select: ({ data }) => data,
  });
}

/** Returns the roles that have a permission: "owners", "admins and owners"; null while they are not known. */
export function rolesWords(items: readonly PermissionItem[] | undefined, permission: string): string | null {
  const roles = items?.find((item) => item.permission === permission)?.roles;
  if (roles === undefined) return null;
  const words = roles.map((role) => `${role}s`);
  return words.length < 2 ? (words[0] ?? null) : `${words.slice(0, -1).join(', ')} and ${words.at(-1) ?? ''}`;
}

/** Returns the words of a failed change. */
export const changeError = (error: unknown): string | null =>
  error === null ? null : error instanceof RequestError ? error.detail : 'The change failed. Try again.';
