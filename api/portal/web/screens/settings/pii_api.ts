// The reads and changes of the PII policy.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { apiQuery, send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { useSettled } from '../../lists/use_settled.ts';
import { toast } from '../../ui/toast.tsx';
import type { PiiPolicy } from './pii_draft.ts';

const PATH = '/orgs/{org_id}/pii-policy';
const TYPING_MS = 300;

export function usePiiPolicy() {
  const { org_id } = useOrganization();
  return useQuery({ ...apiQuery(org_id, PATH, { path: { org_id } }), select: ({ data }) => data });
}

/** Returns the text as a draft of the policy would store it; asks nothing for an empty text. */
export function usePiiTest(text: string, { kinds, custom }: PiiPolicy) {
  const { org_id } = useOrganization();
  const asked = useSettled(JSON.stringify({ text, policy: { kinds, custom } }), TYPING_MS);
  return useQuery({
    queryKey: [org_id, '/orgs/{org_id}/pii-policy/test', asked],
    queryFn: ({ signal }) =>
      send(org_id, 'post', '/orgs/{org_id}/pii-policy/test', {
        params: { path: { org_id } },
        body: JSON.parse(asked) as { text: string; policy: Pick<PiiPolicy, 'kinds' | 'custom'> },
        signal,
      }),
    enabled: text !== '',
    retry: false,
    // The text may be personal data, so its answer is not kept.
    gcTime: 0,
    placeholderData: (before) => before,
    select: ({ data }) => data,
  });
}

export function useSavePii() {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (body: PiiPolicy) =>
      send(org_id, 'put', '/orgs/{org_id}/pii-policy', { params: { path: { org_id } }, body }),
    onSuccess: async () => {
      toast({ text: 'Saved the rules of redaction.' });
      await queries.invalidateQueries({ queryKey: [org_id, PATH] });
    },
  });
}
