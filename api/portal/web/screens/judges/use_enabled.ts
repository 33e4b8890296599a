// Enables or disables a judge, with Undo.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { useOrganization } from '../../client/session.ts';
import { toast } from '../../ui/toast.tsx';
import type { Judge } from './draft.ts';

/** Returns the change. */
export function useEnabled({ judge_id, name }: Judge) {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const set = async (enabled: boolean): Promise<void> => {
    const params = { path: { judge_id } };
    await send(org_id, 'patch', '/v1/judges/{judge_id}', { params, body: { enabled } });
    await cache.invalidateQueries({ predicate: ({ queryKey }) => String(queryKey[1]).startsWith('/v1/judges') });
  };
  const refused = (error: unknown): void => {
    toast({ tone: 'error', text: error instanceof RequestError ? error.detail : 'The judge was not changed.' });
  };
  return useMutation({
    mutationFn: set,
    onSuccess: (_done, enabled) => {
      toast({
        text: enabled ? `${name} judges live traffic.` : `${name} no longer judges live traffic.`,
        action: {
          label: 'Undo',
          run: () => {
            set(!enabled).catch(refused);
          },
        },
      });
    },
    onError: refused,
  });
}
