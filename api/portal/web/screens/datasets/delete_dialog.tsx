// The dialog that deletes one version of a dataset: it says what goes with it and what stays.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { navigate } from 'wouter/use-browser-location';
import { apiQuery, send } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import { type Dataset, datasetPath, rereadDatasets } from './dataset_api.ts';

interface DeleteDialogProps {
  dataset: Dataset;
  /** Another version of the dataset, which is shown afterwards; without one the list is. */
  next: Dataset | undefined;
  onClose: () => void;
}

/** The open dialog. */
export default function DeleteDialog({ dataset, next, onClose }: DeleteDialogProps): ReactElement {
  const { org_id, can } = useOrganization();
  const queries = useQueryClient();
  const { dataset_id, item_count } = dataset;
  const evals = useQuery({
    ...apiQuery(org_id, '/v1/evals', { query: { dataset_id, limit: 1 } }),
    enabled: can('judges:read'),
  });
  const title = `${oneLine(dataset.name)} ${oneLine(dataset.version)}`;
  const remove = useMutation({
    mutationFn: () => send(org_id, 'delete', '/v1/datasets/{dataset_id}', { params: { path: { dataset_id } } }),
    onSuccess: () => {
      toast({ text: `Deleted version ${oneLine(dataset.version)} of ${oneLine(dataset.name)}.` });
      navigate(next === undefined ? `/o/${encodeURIComponent(org_id)}/datasets` : datasetPath(org_id, next.dataset_id));
      onClose();
      void rereadDatasets(queries, org_id);
    },
  });
  const submit = (): void => {
    if (!remove.isPending) remove.mutate();
  };
  return (
    <Dialog
      title={`Delete ${title}`}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" busy={remove.isPending}>
            Delete {count(item_count)} {item_count === 1 ? 'item' : 'items'}
          </Button>
        </>
      }
    >
      {remove.error !== null && <ErrorPanel error={remove.error} what="the deletion" />}
      <p>This version is deleted with its items and the grants on it. Other versions stay.</p>
      <p>{evalWords(evals.data?.meta.total)}</p>
    </Dialog>
  );
}

/** Says what happens to the evals of the dataset. */
function evalWords(evals: number | undefined): string {
  if (evals === undefined) return 'Evals of this version and their scores stay.';
  if (evals === 0) return 'No eval was run over it.';
  return evals === 1
    ? 'The eval that was run over it and its scores stay.'
    : `The ${count(evals)} evals that were run over it and their scores stay.`;
}
