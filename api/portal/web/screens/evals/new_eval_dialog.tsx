// Starts an eval: a judge, and stored traces or a dataset. It says how many are judged and what the
// calls of models cost before it starts.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useLocation } from 'wouter';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { count, money } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Select } from '../../ui/field.tsx';
import styles from '../judges/judges.module.css';
import { useJudges } from './eval_data.ts';
import { SUBJECTS, type Subject, SubjectFields } from './subject_fields.tsx';
import { useSubject } from './use_subject.ts';

interface NewEvalDialogProps {
  /** First values of the form; empty where nothing was chosen. */
  judge_id: string;
  trace_ids: readonly string[];
  dataset_id: string;
  onClose: () => void;
}

/** Starts the eval and shows it. */
function useStart(request: ReturnType<typeof useSubject>['request']) {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: async () => {
      if (request === null) throw new Error('The form is not complete.');
      if (request.kind === 'traces')
        return send(org_id, 'post', '/v1/evals', { body: { ...request.body, async: true }, idempotencyKey });
      const params = { path: { dataset_id: request.dataset_id } };
      return send(org_id, 'post', '/v1/datasets/{dataset_id}/run', {
        params,
        body: { ...request.body, async: true },
        idempotencyKey,
      });
    },
    onSuccess: async ({ data }) => {
      await cache.invalidateQueries({ predicate: ({ queryKey }) => queryKey[1] === '/v1/evals' });
      navigate(`/o/${encodeURIComponent(org_id)}/evals/${encodeURIComponent(data.eval_id)}`);
    },
  });
}

/** The dialog. */
export function NewEvalDialog({ judge_id, trace_ids, dataset_id, onClose }: NewEvalDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const judges = useJudges(org_id);
  const [chosen, setChosen] = useState(judge_id);
  const [subject, setSubject] = useState<Subject>({
    kind: trace_ids.length > 0 ? 'ids' : dataset_id === '' ? 'sample' : 'dataset',
    limit: '100',
    query: 't=7d',
    ids: trace_ids.join('\n'),
    dataset_id,
    prompt_version: '',
    model: '',
  });
  const judge = judges.find((one) => one.judge_id === chosen) ?? judges[0];
  const asked = useSubject(org_id, judge?.judge_id ?? null, subject);
  const start = useStart(asked.request);
  const ready = asked.request !== null && !start.isPending;
  const submit = (): void => {
    if (ready) start.mutate();
  };
  return (
    <Dialog
      title="Run eval"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Control+Enter" busy={start.isPending} disabled={!ready}>
            Run eval
          </Button>
        </>
      }
    >
      <div className={styles.stack}>
        <Field label="Judge">
          {(control) => (
            <Select
              {...control}
              value={judge?.judge_id ?? ''}
              onChange={(event) => {
                setChosen(event.currentTarget.value);
              }}
            >
              {judges.map(({ judge_id: id, name, version }) => (
                <option key={id} value={id}>
                  {name} (version {version})
                </option>
              ))}
            </Select>
          )}
        </Field>
        <Kinds subject={subject} onChange={setSubject} />
        <SubjectFields
          subject={subject}
          onChange={(patch) => {
            setSubject({ ...subject, ...patch });
          }}
        />
        <p role="status">{judge === undefined ? 'Create a judge first.' : priceWords(asked)}</p>
        {asked.error !== null && <ErrorPanel error={asked.error} what="the estimate" />}
        {start.error !== null && <ErrorPanel error={start.error} what="the eval" />}
      </div>
    </Dialog>
  );
}

function Kinds({ subject, onChange }: { subject: Subject; onChange: (subject: Subject) => void }): ReactElement {
  return (
    <fieldset className={styles.choices}>
      <legend>Judged</legend>
      {SUBJECTS.map(({ kind, label }) => (
        <label key={kind} className={styles.check}>
          <input
            type="radio"
            name="subject"
            checked={subject.kind === kind}
            onChange={() => {
              onChange({ ...subject, kind });
            }}
          />
          {label}
        </label>
      ))}
    </fieldset>
  );
}

/** Returns how many are judged, and what that costs. */
function priceWords({ loading, estimate, items }: ReturnType<typeof useSubject>): string {
  if (items !== null)
    return `Judges ${count(items)} ${items === 1 ? 'item' : 'items'}: one model call for each answer, and one for each judgement by a model.`;
  if (loading) return 'Counting the traces';
  if (estimate === null) return '';
  const { queued_traces, calls, cost_usd } = estimate;
  const judged = `Judges ${count(queued_traces)} ${queued_traces === 1 ? 'trace' : 'traces'}`;
  if (calls === 0) return `${judged} by a rule, without model calls.`;
  return `${judged} with ${count(calls)} model calls, ${
    cost_usd === null ? 'for which no price is known.' : `about ${money(cost_usd)}.`
  }`;
}
