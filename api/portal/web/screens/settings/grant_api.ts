// The reads and changes of grants. The address names a resource (`resource_type`, `resource_id`) for
// which the dialog opens, so that other pages lead to it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import { codec, integer, optionalChoice, text } from '../../url/search_params.ts';

const PATH = '/orgs/{org_id}/grants';
export const PAGE = 100;
const OFFSET_MAX = 1_000_000;
export const TYPES = ['trace', 'agent', 'judge', 'dataset'] as const;

export type Grant = Answer<typeof PATH>['data'][number];
export type GrantType = (typeof TYPES)[number];
type NewGrant = Pick<Grant, 'user_id' | 'resource' | 'permissions' | 'expires_at'>;

export const grantsUrl = codec({
  resource_type: optionalChoice(TYPES),
  resource_id: text(),
  offset: integer(0, OFFSET_MAX),
});

export function useGrants(offset: number) {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, PATH, { path: { org_id }, query: { limit: PAGE, offset } }),
    select: ({ data, meta }) => ({ grants: data, total: meta.total }),
  });
}

export function useCreateGrant(onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key, setKey] = useState({ of: '', id: '' });
  return useMutation({
    mutationFn: (body: NewGrant) => {
      const of = JSON.stringify(body);
      const idempotencyKey = key.of === of ? key.id : randomId();
      setKey({ of, id: idempotencyKey });
      return send(org_id, 'post', '/orgs/{org_id}/grants', { params: { path: { org_id } }, body, idempotencyKey });
    },
    onSuccess: async () => {
      onDone();
      toast({ text: 'Created the grant.' });
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}

export function useRevokeGrant(onDone: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (grant_id: string) =>
      send(org_id, 'delete', '/orgs/{org_id}/grants/{grant_id}', { params: { path: { org_id, grant_id } } }),
    onSuccess: async () => {
      onDone();
      toast({ text: 'Revoked the grant.' });
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}
