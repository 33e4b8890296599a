// The reads and changes of the limits of API keys.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import type { KeyLimits } from './key_draft.ts';

export type ApiKey = Answer<'/orgs/{org_id}/api-keys'>['data'][number];

export const KEYS_PATH = '/orgs/{org_id}/api-keys';
const FRESH_MS = 10_000;
/** Most keys that the section shows. */
export const KEYS_MAX = 200;

export function useKeys() {
  const { org_id } = useOrganization();
  return useQuery({
    ...apiQuery(org_id, KEYS_PATH, { path: { org_id }, query: { limit: KEYS_MAX } }),
    staleTime: FRESH_MS,
    select: ({ data, meta }) => ({ keys: data, total: meta.total }),
  });
}

/** Saves the limits of a key. */
export function useSaveKeyLimits(onSaved: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: ({ key, limits }: { key: ApiKey; limits: KeyLimits }) =>
      send(org_id, 'patch', '/orgs/{org_id}/api-keys/{key_id}', {
        params: { path: { org_id, key_id: key.id } },
        body: limits,
      }),
    onSuccess: async (_, { key }) => {
      onSaved();
      toast({ text: `Saved the limits of ${key.name}.` });
      await queries.invalidateQueries({ queryKey: [org_id, KEYS_PATH] });
    },
  });
}
