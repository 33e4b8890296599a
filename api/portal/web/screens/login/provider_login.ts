// The ways to log in that the service has, and the address of the login at the identity provider.
import { useQuery } from '@tanstack/react-query';
import { apiQuery } from '../../client/api.ts';

/** Returns the ways to log in; none until they are known. */
export function useLoginWays(): readonly string[] {
  const about = useQuery({ ...apiQuery(null, '/v1/about', {}), staleTime: Infinity });
  return about.data?.data.login ?? [];
}

/** Returns the address that logs in at the identity provider and leads to a path of this service. */
export const providerLogin = (to: string): string => `/v1/session/oidc?to=${encodeURIComponent(to)}`;
