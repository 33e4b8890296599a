// The dialog that adds a score to the selected span or to the whole trace.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { send } from '../../client/api.ts';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import { oneLine } from '../../trace/text/one_line.ts';
import { nameOf } from '../../trace/model/tree.ts';
import { readUntil, takeBack } from './score_changes.ts';
import styles from './span_panel.module.css';
import { spanOfRow, useTrace } from '../../trace/store.ts';

const NUMBER = /^-?\d{1,15}(?:\.\d{1,15})?$/;

interface Draft {
  target: string;
  name: string;
  value: string;
  comment: string;
}
const EMPTY: Draft = { target: 'trace', name: '', value: '', comment: '' };

/** Reads what was typed as the API takes it: true and false, a number, or a text. */
function valueOf(text: string): number | boolean | string {
  const trimmed = text.trim();
  if (trimmed === 'true' || trimmed === 'false') return trimmed === 'true';
  return NUMBER.test(trimmed) ? Number(trimmed) : trimmed;
}

function useSave(traceId: string, span_id: string, onSaved: () => void) {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const [key] = useState(randomId);
  return useMutation({
    mutationFn: ({ target, name, value, comment }: Draft) =>
      send(org_id, 'post', '/v1/scores', {
        idempotencyKey: key,
        body: {
          trace_id: traceId,
          span_id: target === 'span' ? span_id : null,
          name: name.trim(),
          value: valueOf(value),
          comment: comment.trim() === '' ? null : comment,
        },
      }),
    onSuccess: ({ data: { score_id } }, { name }) => {
      const undo = (): void => {
        if (score_id !== null) void takeBack(queries, org_id, score_id);
      };
      toast({
        text: `Added the score ${oneLine(name.trim())}. It shows in a moment.`,
        action: { label: 'Undo', run: undo },
      });
      void readUntil(queries, org_id, (scores) => scores.some((score) => score.score_id === score_id));
      onSaved();
    },
  });
}

/** The dialog. */
export default function ScoreDialog({ traceId, onClose }: { traceId: string; onClose: () => void }): ReactElement {
  const { tree } = useTrace((snapshot) => snapshot.model);
  const span = useTrace((snapshot) => spanOfRow(snapshot.model, snapshot.focusRow));
  const [draft, setDraft] = useState(EMPTY);
  const save = useSave(traceId, tree.spanId[span] ?? '', onClose);
  const isReady = draft.name.trim() !== '' && draft.value.trim() !== '';
  return (
    <Dialog
      title="Add score"
      onClose={onClose}
      onSubmit={() => {
        if (isReady && !save.isPending) save.mutate(draft);
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" disabled={!isReady} busy={save.isPending}>
            Add score
          </Button>
        </>
      }
    >
      <Fields
        draft={draft}
        spanName={oneLine(nameOf(tree, span))}
        error={save.error instanceof RequestError ? save.error.detail : (save.error?.message ?? null)}
        onChange={(patch) => {
          setDraft({ ...draft, ...patch });
        }}
      />
    </Dialog>
  );
}

/** Marks the field that has the focus when the dialog opens. */
const opensHere = (field: HTMLInputElement | null): void => {
  field?.setAttribute('autofocus', '');
};

interface FieldsProps {
  draft: Draft;
  spanName: string;
  error: string | null;
  onChange: (patch: Partial<Draft>) => void;
}

function Fields({ draft, spanName, error, onChange }: FieldsProps): ReactElement {
  const text = (name: 'name' | 'value' | 'comment') => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [name]: event.target.value });
    },
  });
  return (
    <div className={styles.form}>
      <Field label="Score of">
        {(control) => (
          <Select
            {...control}
            value={draft.target}
            onChange={(event) => {
              onChange({ target: event.target.value });
            }}
          >
            <option value="trace">The whole trace</option>
            <option value="span">The span {spanName}</option>
          </Select>
        )}
      </Field>
      <Field label="Name" hint="Such as helpful or stars">
        {(control) => <Input {...control} ref={opensHere} required maxLength={200} {...text('name')} />}
      </Field>
      <Field label="Value" hint="A number, true or false, or a word" error={error}>
        {(control) => <Input {...control} required {...text('value')} />}
      </Field>
      <Field label="Comment">{(control) => <Input {...control} maxLength={10_000} {...text('comment')} />}</Field>
    </div>
  );
}
