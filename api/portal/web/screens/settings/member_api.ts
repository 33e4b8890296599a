// The reads and changes of members, invites and the transfer of ownership.
import { type QueryClient, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { toast } from '../../ui/toast.tsx';
import { codec, integer, optionalChoice } from '../../url/search_params.ts';
import type { Role } from './settings_api.ts';

const MEMBERS = '/orgs/{org_id}/members';
const TRANSFER = '/orgs/{org_id}/transfer';
/** Members of one page of the list. */
export const PAGE = 100;
const OFFSET_MAX = 2000;
/** Most members that a field of the form offers. */
const CHOICES_MAX = 200;
export const ROLES = ['viewer', 'member', 'admin', 'owner'] as const satisfies readonly Role[];

export type Member = Answer<typeof MEMBERS>['data'][number];
export type Transfer = NonNullable<Answer<typeof TRANSFER>['data']>;

/** The state of the tab in the address. */
export const membersUrl = codec({
  role: optionalChoice(ROLES),
  status: optionalChoice(['active', 'invited'] as const),
  offset: integer(0, OFFSET_MAX),
});

type MembersQuery = ReturnType<typeof membersUrl.parse>;

export function useMembers({ role, status, offset }: MembersQuery) {
  const { org_id } = useOrganization();
  const query = {
    limit: PAGE,
    offset: offset ?? 0,
    ...(role === null ? {} : { role }),
    ...(status === null ? {} : { status }),
  };
  return useQuery({
    ...apiQuery(org_id, MEMBERS, { path: { org_id }, query }),
    placeholderData: (before) => before,
    select: ({ data, meta }) => ({ members: data, total: meta.total }),
  });
}

/** Returns the active members, and how many of them there are. */
export function useActiveMembers(role?: Role) {
  const { org_id } = useOrganization();
  const query = { limit: CHOICES_MAX, status: 'active' as const, ...(role === undefined ? {} : { role }) };
  return useQuery({
    ...apiQuery(org_id, MEMBERS, { path: { org_id }, query }),
    select: ({ data, meta }) => ({ members: data, total: meta.total }),
  });
}

export function useTransfer() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, TRANSFER, { path: { org_id } }),
    // A wrapper, because a query cannot distinguish null from no data in its place.
    select: ({ data }) => ({ transfer: data }),
  });
}

const reread = (queries: QueryClient, org_id: string): void => {
  for (const path of [MEMBERS, TRANSFER, '/orgs/{org_id}/api-keys'])
    void queries.invalidateQueries({ queryKey: [org_id, path] });
};

/** Invites a person; the answer has a token where the service sends no mail. */
export function useInvite(onDone: (invited: { email: string; token: string | null }) => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ of: '', id: '' });
  return useMutation({
    mutationFn: (body: { email: string; role: Role }) => {
      // The same body keeps its key, so that a second click sends one invite.
      const of = JSON.stringify(body);
      const idempotencyKey = key.of === of ? key.id : randomId();
      setKey({ of, id: idempotencyKey });
      return send(org_id, 'post', '/orgs/{org_id}/members', { params: { path: { org_id } }, body, idempotencyKey });
    },
    onSuccess: ({ data: { email, token } }) => {
      onDone({ email, token: token ?? null });
      toast({ text: `Invited ${oneLine(email)}.` });
      reread(queries, org_id);
    },
  });
}

export function useChangeRole({ user_id, email }: Member, onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (role: Role) =>
      send(org_id, 'patch', '/orgs/{org_id}/members/{user_id}', {
        params: { path: { org_id, user_id } },
        body: { role },
      }),
    onSuccess: (_, role) => {
      onDone();
      toast({ text: `${oneLine(email)} is ${role} now.` });
      reread(queries, org_id);
    },
  });
}

export function useRemove({ user_id, email, status }: Member, onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () =>
      send(org_id, 'delete', '/orgs/{org_id}/members/{user_id}', { params: { path: { org_id, user_id } } }),
    onSuccess: () => {
      onDone();
      toast({
        text: status === 'invited' ? `Withdrew the invite of ${oneLine(email)}.` : `Removed ${oneLine(email)}.`,
      });
      reread(queries, org_id);
    },
  });
}

/** Offers the ownership; the answer has a token where the service sends no mail. */
export function useOffer(onDone: (token: string | null) => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [idempotencyKey, setKey] = useState(randomId);
  return useMutation({
    mutationFn: (new_owner_user_id: string) =>
      send(org_id, 'post', '/orgs/{org_id}/transfer', {
        params: { path: { org_id } },
        body: { new_owner_user_id },
        idempotencyKey,
      }),
    onError: () => {
      setKey(randomId());
    },
    onSuccess: ({ data: { token } }) => {
      onDone(token ?? null);
      reread(queries, org_id);
    },
  });
}

export function useWithdraw(onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: () => send(org_id, 'delete', '/orgs/{org_id}/transfer', { params: { path: { org_id } } }),
    onSuccess: () => {
      onDone();
      toast({ text: 'Withdrew the transfer.' });
      reread(queries, org_id);
    },
  });
}
