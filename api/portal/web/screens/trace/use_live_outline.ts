// Follows an open trace: each time spans of it have landed, the outline is read again. A complete
// trace is not followed, nor is one that only a grant opens: the live stream takes the role's right.
import { useQueryClient } from '@tanstack/react-query';
import { useEffect } from 'react';
import { useSession } from '../../client/session.ts';
import { listenLive } from '../../live/shared_live.ts';
import { outlineQuery } from './trace_api.ts';

export function useLiveOutline(org_id: string, traceId: string, isOpen: boolean): void {
  const queries = useQueryClient();
  const org = useSession().data?.orgs.find((one) => one.org_id === org_id);
  const mayFollow = org?.permissions.includes('traces:read') ?? false;
  useEffect(() => {
    if (!isOpen || !mayFollow) return undefined;
    const { queryKey } = outlineQuery(org_id, traceId);
    const query = new URLSearchParams({ topics: `trace:${traceId}` }).toString();
    return listenLive({ org_id, query }, ({ name }) => {
      // A read that is under way brings what has just landed, or the next event asks again.
      if (name === 'trace' || name === 'resync') void queries.invalidateQueries({ queryKey }, { cancelRefetch: false });
    });
  }, [queries, org_id, traceId, isOpen, mayFollow]);
}
