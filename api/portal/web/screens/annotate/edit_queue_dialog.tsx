// The dialog that changes a queue: its name, its instructions and the people per item. Its scores stay as they
// are, because the answers that were given belong to them.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { auditLink } from '../audit/audit_link.ts';
import { formErrors } from '../costs/field_error.ts';
import { changeQueue, type Queue, rereadQueues } from './annotate_api.ts';
import styles from './annotate.module.css';

interface EditQueueDialogProps {
  queue: Queue;
  onClose: () => void;
}

interface QueueDraft {
  name: string;
  instructions: string;
  /** As typed. */
  people: string;
}

/** The open dialog. */
export function EditQueueDialog({ queue, onClose }: EditQueueDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const [draft, setDraft] = useState<QueueDraft>({
    name: queue.name,
    instructions: queue.instructions,
    people: String(queue.people_per_item),
  });
  const save = useMutation({
    mutationFn: () =>
      changeQueue(org_id, queue.queue_id, {
        name: draft.name.trim(),
        instructions: draft.instructions,
        people_per_item: Number(draft.people),
      }),
    onSuccess: ({ data }) => {
      toast({ text: `Saved the queue ${data.name}.`, link: auditLink(org_id, 'annotation_queue.update') });
      rereadQueues(org_id);
      onClose();
    },
  });
  const isReady = draft.name.trim() !== '';
  return (
    <Dialog
      title={`Edit ${queue.name}`}
      onClose={onClose}
      onSubmit={() => {
        if (isReady && !save.isPending) save.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={!isReady} busy={save.isPending}>
            Save queue
          </Button>
        </>
      }
    >
      <QueueFields draft={draft} onChange={setDraft} error={save.error} />
    </Dialog>
  );
}

interface QueueFieldsProps {
  draft: QueueDraft;
  onChange: (draft: QueueDraft) => void;
  error: unknown;
}

function QueueFields({ draft, onChange, error }: QueueFieldsProps): ReactElement {
  const errors = formErrors(error, ['name', 'instructions', 'people_per_item']);
  return (
    <div className={styles.fields}>
      {errors.form !== null && <ErrorPanel error={error} what="the change" />}
      <Field label="Name" error={errors.fields.name ?? null}>
        {(control) => (
          <Input
            {...control}
            autoFocus
            required
            maxLength={100}
            value={draft.name}
            onChange={({ target }) => {
              onChange({ ...draft, name: target.value });
            }}
          />
        )}
      </Field>
      <Field
        label="Instructions"
        hint="Everybody who answers sees them beside the trace"
        error={errors.fields.instructions ?? null}
      >
        {(control) => (
          <textarea
            {...control}
            rows={5}
            maxLength={4000}
            value={draft.instructions}
            onChange={({ target }) => {
              onChange({ ...draft, instructions: target.value });
            }}
          />
        )}
      </Field>
      <Field
        label="People per item"
        hint="With more people than before, items that are done wait for further answers"
        error={errors.fields.people_per_item ?? null}
      >
        {(control) => (
          <Input
            {...control}
            type="number"
            min={1}
            max={5}
            value={draft.people}
            onChange={({ target }) => {
              onChange({ ...draft, people: target.value });
            }}
          />
        )}
      </Field>
    </div>
  );
}
