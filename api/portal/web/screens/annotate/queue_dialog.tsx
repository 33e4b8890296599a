// The dialog that creates an annotation queue with one score or several.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { createQueue, rereadQueues } from './annotate_api.ts';
import { EMPTY_QUEUE, isReady, type QueueDraft, queueOf, SCORES_MAX, withScore } from './queue_draft.ts';
import { ScoreFields } from './score_fields.tsx';
import styles from './annotate.module.css';

interface QueueDialogProps {
  onClose: () => void;
  onCreated: (queue_id: string) => void;
}

/** The dialog. */
export function QueueDialog({ onClose, onCreated }: QueueDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const [draft, setDraft] = useState(EMPTY_QUEUE);
  const [key, setKey] = useState(randomId);
  const save = useMutation({
    mutationFn: () => createQueue(org_id, queueOf(draft), key),
    onSuccess: ({ data }) => {
      toast({ text: `Created the queue ${data.name}.` });
      rereadQueues(org_id);
      onCreated(data.queue_id);
    },
    // The same key would bring back the refusal of the form as it was.
    onError: () => {
      setKey(randomId());
    },
  });
  const ready = isReady(draft);
  return (
    <Dialog
      title="Create annotation queue"
      onClose={onClose}
      onSubmit={() => {
        if (ready && !save.isPending) save.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={!ready} busy={save.isPending}>
            Create queue
          </Button>
        </>
      }
    >
      <Fields
        draft={draft}
        error={save.error === null ? null : save.error instanceof RequestError ? save.error.detail : 'It failed.'}
        onChange={setDraft}
      />
    </Dialog>
  );
}

interface FieldsProps {
  draft: QueueDraft;
  error: string | null;
  onChange: (draft: QueueDraft) => void;
}

function Fields({ draft, error, onChange }: FieldsProps): ReactElement {
  const bound = (name: 'name' | 'instructions' | 'people') => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ ...draft, [name]: event.target.value });
    },
  });
  return (
    <div className={styles.fields}>
      <Field label="Name" error={error}>
        {(control) => <Input {...control} autoFocus required maxLength={100} {...bound('name')} />}
      </Field>
      <Field label="Instructions" hint="Everybody who answers sees them beside the trace">
        {(control) => <textarea {...control} rows={3} maxLength={4000} {...bound('instructions')} />}
      </Field>
      <div className={styles.columns}>
        <Field label="Each item is">
          {(control) => (
            <Select
              {...control}
              value={draft.mode}
              onChange={(event) => {
                onChange({ ...draft, mode: event.currentTarget.value === 'pairwise' ? 'pairwise' : 'single' });
              }}
            >
              <option value="single">One trace</option>
              <option value="pairwise">Two traces to compare</option>
            </Select>
          )}
        </Field>
        <Field label="People per item" hint="With 2 or more, their answers are compared">
          {(control) => <Input {...control} type="number" min={1} max={5} {...bound('people')} />}
        </Field>
      </div>
      <Scores draft={draft} onChange={onChange} />
    </div>
  );
}

function Scores({ draft, onChange }: Omit<FieldsProps, 'error'>): ReactElement {
  const { scores } = draft;
  return (
    <>
      {scores.map((score, index) => (
        <ScoreFields
          key={score.id}
          score={score}
          number={index + 1}
          isPair={draft.mode === 'pairwise'}
          onChange={(patch) => {
            onChange({ ...draft, scores: scores.map((one) => (one.id === score.id ? { ...one, ...patch } : one)) });
          }}
          onRemove={
            scores.length === 1
              ? null
              : () => {
                  onChange({ ...draft, scores: scores.filter(({ id }) => id !== score.id) });
                }
          }
        />
      ))}
      {scores.length < SCORES_MAX && (
        <div className={styles.actions}>
          <Button
            icon="plus"
            onClick={() => {
              onChange(withScore(draft));
            }}
          >
            Add score
          </Button>
        </div>
      )}
    </>
  );
}
