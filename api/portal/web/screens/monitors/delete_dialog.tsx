// The dialog that deletes a monitor: it says what goes with it.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { send } from '../../client/api.ts';
import { deleteThing } from '../../client/deleted_thing.ts';
import { useOrganization } from '../../client/session.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import type { Monitor } from './draft.ts';
import { useReread } from './monitor_api.ts';

interface DeleteDialogProps {
  monitor: Monitor;
  onClose: () => void;
}

/** The open dialog. */
export function DeleteDialog({ monitor: { monitor_id, name }, onClose }: DeleteDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const reread = useReread();
  const remove = useMutation({
    mutationFn: () =>
      deleteThing(cache, monitor_id, () =>
        send(org_id, 'delete', '/v1/monitors/{monitor_id}', { params: { path: { monitor_id } } }),
      ),
    onSuccess: () => {
      toast({ text: `Deleted ${oneLine(name)}.` });
      onClose();
      navigate(`/o/${encodeURIComponent(org_id)}/monitors`);
      void reread(monitor_id);
    },
  });
  return (
    <Dialog
      title={`Delete ${oneLine(name)}`}
      onClose={onClose}
      onSubmit={() => {
        if (!remove.isPending) remove.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" busy={remove.isPending}>
            Delete monitor
          </Button>
        </>
      }
    >
      {remove.error !== null && <ErrorPanel error={remove.error} what="the deletion" />}
      <p>The monitor is deleted with its changes. What it had alerting is resolved within a minute.</p>
    </Dialog>
  );
}
