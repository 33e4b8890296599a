// The editor of a judge: its fields on the left, what it says of real traces on the right. Saving a
// new judge creates it; saving a change shows the difference between the two versions first.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useLocation } from 'wouter';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input } from '../../ui/field.tsx';
import { toast } from '../../ui/toast.tsx';
import {
  bodyOf,
  type Draft,
  type DraftBody,
  type DraftErrors,
  draftOf,
  type Judge,
  missingIn,
  refusedField,
} from './draft.ts';
import styles from './judges.module.css';
import { ModelFields } from './model_fields.tsx';
import { PreviewPane } from './preview_pane.tsx';
import { RuleFields } from './rule_fields.tsx';
import { SaveDialog } from './save_dialog.tsx';
import { ScopeFields } from './scope_fields.tsx';
import { ThresholdFields } from './threshold_fields.tsx';
import { useModelPreview, useRulePreview, useScope } from './use_preview.ts';

interface EditorFormProps {
  /** The judge that is changed; null: a new one. */
  judge: Judge | null;
  initial: Draft;
}

/** Creates a judge or its next version. */
function useSave(judge: Judge | null) {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const [, navigate] = useLocation();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: async (body: DraftBody) => {
      if (judge === null) return (await send(org_id, 'post', '/v1/judges', { body, idempotencyKey })).data;
      const patch = Object.fromEntries(Object.entries(body).filter(([name]) => name !== 'kind'));
      const params = { path: { judge_id: judge.judge_id } };
      return (await send(org_id, 'patch', '/v1/judges/{judge_id}', { params, body: patch })).data;
    },
    onSuccess: async ({ judge_id, version }) => {
      toast({ text: judge === null ? 'The judge was created.' : `Version ${version} was saved.` });
      await cache.invalidateQueries({
        predicate: ({ queryKey }) => String(queryKey[1]).startsWith('/v1/judges'),
      });
      navigate(`/o/${encodeURIComponent(org_id)}/judges/${encodeURIComponent(judge_id)}`);
    },
  });
}

/** Returns what the draft says of the traces in its scope. */
function useVerdicts(org_id: string, draft: Draft) {
  const scope = useScope(org_id, draft);
  const rule = useRulePreview(org_id, draft, scope.ids);
  const model = useModelPreview(org_id, draft, scope.ids);
  if (draft.kind === 'llm') {
    const { run, price } = model;
    const previewError = run.error ?? price.error;
    return { scope, model, preview: run.data?.data, previewError, waiting: run.isPending };
  }
  const { query, ready } = rule;
  const waiting = ready && rule.waiting && scope.ids.length > 0;
  return { scope, model, preview: query.data?.data, previewError: ready ? query.error : null, waiting };
}

function useEditorKeys(onSave: () => void, model: ReturnType<typeof useModelPreview> | null): void {
  useKeys('Judge', [
    { keys: 'Control+Enter', label: 'Save the judge', run: onSave },
    {
      keys: 'Control+Shift+Enter',
      label: 'Judge the traces by the model',
      run: () => {
        if (model?.ready === true && model.price.data !== undefined && !model.run.isPending) model.run.mutate();
      },
    },
  ]);
}

/** The editor. */
export function EditorForm({ judge, initial }: EditorFormProps): ReactElement {
  const { org_id } = useOrganization();
  const [draft, setDraft] = useState(initial);
  const [tried, setTried] = useState(false);
  const [comparing, setComparing] = useState(false);
  const save = useSave(judge);
  const { scope, model, preview, previewError, waiting } = useVerdicts(org_id, draft);
  const isModel = draft.kind === 'llm';
  const errors = errorsOf(draft, tried, [save.error, previewError]);
  const onChange = (patch: Partial<Draft>): void => {
    setDraft((now) => ({ ...now, ...patch }));
    save.reset();
  };
  const onSave = (): void => {
    setTried(true);
    if (draft.name.trim() === '' || Object.keys(missingIn(draft)).length > 0 || save.isPending) return;
    if (judge === null) save.mutate(bodyOf(draft));
    else setComparing(true);
  };
  useEditorKeys(onSave, isModel ? model : null);
  const fields = { draft, errors, onChange, onSave };
  const { newest } = scope;
  return (
    <div className={styles.editor}>
      <form
        className={styles.pane}
        aria-label="Judge"
        onSubmit={(event) => {
          event.preventDefault();
          onSave();
        }}
      >
        <NameFields {...fields} isNew={judge === null} />
        {isModel ? <ModelFields {...fields} /> : <RuleFields {...fields} />}
        <ThresholdFields {...fields} scores={preview?.verdicts.flatMap(({ score }) => score ?? []) ?? []} />
        <ScopeFields {...fields} inADay={scope.inADay} />
        {save.error !== null && refusedField(save.error) === null && <ErrorPanel error={save.error} what="the judge" />}
        <SaveFoot judge={judge} draft={draft} onChange={onChange} busy={save.isPending} />
      </form>
      <PreviewPane
        org_id={org_id}
        traces={newest.data?.data ?? []}
        loading={newest.isPending}
        failure={newest.error === null ? null : { error: newest.error, retry: () => void newest.refetch() }}
        texts={scope.texts}
        preview={preview}
        waiting={waiting}
        error={previewError}
        model={isModel ? model : null}
      />
      {comparing && judge !== null && (
        <SaveDialog
          judge={judge}
          body={bodyOf(draft)}
          busy={save.isPending}
          onSave={() => {
            save.mutate(bodyOf(draft), {
              onError: () => {
                setComparing(false);
              },
            });
          }}
          onClose={() => {
            setComparing(false);
          }}
        />
      )}
    </div>
  );
}

/** Returns the errors to show: those of the API, and what is missing once somebody tried to save. */
function errorsOf(draft: Draft, tried: boolean, failures: readonly unknown[]): DraftErrors {
  const missing = tried ? missingIn(draft) : {};
  const named = tried && draft.name.trim() === '' ? { name: 'Enter a name.' } : {};
  const refused = failures.flatMap((failure) => refusedField(failure) ?? []);
  return { ...named, ...missing, ...Object.fromEntries(refused.map(({ field, text }) => [field, text])) };
}

interface NameFieldsProps {
  draft: Draft;
  errors: DraftErrors;
  onChange: (patch: Partial<Draft>) => void;
  isNew: boolean;
}

function NameFields({ draft, errors, onChange, isNew }: NameFieldsProps): ReactElement {
  return (
    <div className={styles.fields}>
      <Field label="Name" error={errors['name'] ?? null}>
        {(control) => (
          <Input
            {...control}
            maxLength={200}
            autoFocus={isNew}
            value={draft.name}
            onChange={(event) => {
              onChange({ name: event.currentTarget.value });
            }}
          />
        )}
      </Field>
      {isNew && (
        <fieldset className={styles.choices}>
          <legend>Judged by</legend>
          {(['deterministic', 'llm'] as const).map((kind) => (
            <label key={kind} className={styles.check}>
              <input
                type="radio"
                name="kind"
                checked={draft.kind === kind}
                onChange={() => {
                  onChange({ kind, ...(kind === 'llm' ? { pass: '4', warn: '3' } : { pass: '1', warn: '' }) });
                }}
              />
              {kind === 'llm' ? 'A model' : 'A rule'}
            </label>
          ))}
        </fieldset>
      )}
    </div>
  );
}

function SaveFoot({
  judge,
  draft,
  onChange,
  busy,
}: {
  judge: Judge | null;
  draft: Draft;
  onChange: (patch: Partial<Draft>) => void;
  busy: boolean;
}): ReactElement {
  const unchanged = judge !== null && JSON.stringify(draft) === JSON.stringify(draftOf(judge));
  return (
    <div className={styles.foot}>
      <Button look="primary" type="submit" keys="Control+Enter" busy={busy} disabled={unchanged}>
        {judge === null ? 'Create judge' : `Save version ${judge.version + 1}`}
      </Button>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={draft.enabled}
          onChange={(event) => {
            onChange({ enabled: event.currentTarget.checked });
          }}
        />
        Judge live traffic
      </label>
    </div>
  );
}
