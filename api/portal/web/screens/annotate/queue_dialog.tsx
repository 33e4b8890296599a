// The dialog that creates an annotation queue, and fills it with traces of a list where the caller
// gives one.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { createQueue, type NewQueue, rereadQueues } from './annotate_api.ts';
import { optionsOf, type ScoreSpec } from './score_keys.ts';
import styles from './annotate.module.css';

interface Draft {
  name: string;
  instructions: string;
  people: string;
  score: string;
  type: ScoreSpec['type'];
  options: string;
  min: string;
  max: string;
}
const EMPTY: Draft = {
  name: '',
  instructions: '',
  people: '1',
  score: 'correct',
  type: 'categorical',
  options: 'yes, partly, no',
  min: '1',
  max: '5',
};

function queueOf({ name, instructions, people, score, type, options, min, max }: Draft): NewQueue {
  const named = { name: score.trim(), required: true };
  const spec: ScoreSpec =
    type === 'categorical'
      ? { ...named, type, options: optionsOf(options) }
      : type === 'numeric'
        ? { ...named, type, range: { min: Number(min), max: Number(max) } }
        : { ...named, type };
  return {
    name: name.trim(),
    instructions,
    mode: type === 'preference' ? 'pairwise' : 'single',
    scores: [spec],
    people_per_item: Number(people),
  };
}

interface QueueDialogProps {
  onClose: () => void;
  onCreated: (queue_id: string) => void;
}

/** The dialog. */
export function QueueDialog({ onClose, onCreated }: QueueDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const [draft, setDraft] = useState(EMPTY);
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
  const isReady = draft.name.trim() !== '' && draft.score.trim() !== '';
  return (
    <Dialog
      title="Create annotation queue"
      onClose={onClose}
      onSubmit={() => {
        if (isReady && !save.isPending) save.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={!isReady} busy={save.isPending}>
            Create queue
          </Button>
        </>
      }
    >
      <Fields
        draft={draft}
        error={save.error === null ? null : save.error instanceof RequestError ? save.error.detail : 'It failed.'}
        onChange={(patch) => {
          setDraft({ ...draft, ...patch });
        }}
      />
    </Dialog>
  );
}

interface FieldsProps {
  draft: Draft;
  error: string | null;
  onChange: (patch: Partial<Draft>) => void;
}

const TYPES = [
  ['categorical', 'One of some categories'],
  ['boolean', 'True or false'],
  ['numeric', 'A number'],
  ['preference', 'The better of two traces'],
] as const;

function Fields({ draft, error, onChange }: FieldsProps): ReactElement {
  const bound = (name: keyof Draft) => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [name]: event.target.value });
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
      <Field label="Score" hint="Name of the score that each trace gets">
        {(control) => <Input {...control} required maxLength={100} {...bound('score')} />}
      </Field>
      <Field label="Value">
        {(control) => (
          <Select
            {...control}
            value={draft.type}
            onChange={(event) => {
              onChange({ type: event.currentTarget.value as Draft['type'] });
            }}
          >
            {TYPES.map(([type, words]) => (
              <option key={type} value={type}>
                {words}
              </option>
            ))}
          </Select>
        )}
      </Field>
      {draft.type === 'categorical' && (
        <Field
          label="Categories"
          hint={`${count(optionsOf(draft.options).length)} of at most 9, with commas between them`}
        >
          {(control) => <Input {...control} {...bound('options')} />}
        </Field>
      )}
      {draft.type === 'numeric' && (
        <>
          <Field label="Smallest value">
            {(control) => <Input {...control} type="number" step="any" {...bound('min')} />}
          </Field>
          <Field label="Largest value">
            {(control) => <Input {...control} type="number" step="any" {...bound('max')} />}
          </Field>
        </>
      )}
      <Field label="People per item" hint="With 2 or more, their answers are compared">
        {(control) => <Input {...control} type="number" min={1} max={5} {...bound('people')} />}
      </Field>
    </div>
  );
}
