// The dialog that adds a score to the selected span or to the whole trace.
import { type QueryClient, type QueryFilters, useMutation, useQueryClient } from '@tanstack/react-query';
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
import type { SpanDetail } from './trace_api.ts';
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

/** Pauses before the reads after a score was accepted, milliseconds: it is stored a moment later. */
const READ_AFTER_MS = [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000];

/** Reads the shown span again until it has the score, then the outline. */
async function readUntilShown(queries: QueryClient, org_id: string, name: string): Promise<void> {
  const shown: QueryFilters = { queryKey: [org_id, '/v1/traces/{trace_id}/spans/{span_id}'], type: 'active' };
  const countOf = (): number =>
    queries
      .getQueriesData<{ data: SpanDetail }>(shown)
      .flatMap(([, answer]) => answer?.data.scores ?? [])
      .filter((score) => score.name === name).length;
  const before = countOf();
  // Spans that are not on the screen are read when they are selected.
  void queries.invalidateQueries({ ...shown, type: 'inactive', refetchType: 'none' });
  for (const pause of READ_AFTER_MS) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    await queries.invalidateQueries(shown);
    if (countOf() > before) break;
  }
  await queries.invalidateQueries({ queryKey: [org_id, '/v1/traces/{trace_id}/outline'] });
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
    onSuccess: (_, { name }) => {
      toast({ text: `Added the score ${oneLine(name.trim())}. It shows in a moment.` });
      void readUntilShown(queries, org_id, name.trim());
      onSaved();
    },
  });
}

export function ScoreDialog({ traceId, onClose }: { traceId: string; onClose: () => void }): ReactElement {
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
