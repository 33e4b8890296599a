// The dialog that archives an agent.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import { auditLink } from '../audit/audit_link.ts';
import type { Agent } from './agent_data.ts';

/** The open dialog. */
export function ArchiveDialog({ agent, onClose }: { agent: Agent; onClose: () => void }): ReactElement {
  const { org_id, can } = useOrganization();
  const cache = useQueryClient();
  const { agent_id } = agent;
  const { mutate, error, isPending } = useMutation({
    mutationFn: () =>
      send(org_id, 'delete', '/orgs/{org_id}/agents/{agent_id}', { params: { path: { org_id, agent_id } } }),
    onSuccess: () => {
      toast({
        text: `Archived ${oneLine(agent.name)}.`,
        ...(can('audit:view') ? { link: auditLink(org_id, 'agent.archive') } : {}),
      });
      onClose();
      void cache.invalidateQueries({
        predicate: ({ queryKey: [org, path] }) =>
          org === org_id && typeof path === 'string' && path.startsWith('/orgs/{org_id}/agents'),
      });
    },
  });
  const submit = (): void => {
    if (!isPending) mutate();
  };
  return (
    <Dialog
      title={`Archive ${oneLine(agent.name)}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" busy={isPending}>
            Archive agent
          </Button>
        </>
      }
    >
      {error !== null && <ErrorPanel error={error} what="the change" />}
      <p>Its traces stay readable. Registering the agent again restores it.</p>
    </Dialog>
  );
}
