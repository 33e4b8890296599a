// The editor of a monitor: its fields on the left, its values and alerts of the last day on the right.
import { useMutation } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { useLocation } from 'wouter';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { toast } from '../../ui/toast.tsx';
import { formErrors } from '../costs/field_error.ts';
import judges from '../judges/judges.module.css';
import { Typed } from './controls.tsx';
import { bodyOf, type Draft, type DraftErrors, missingIn, type Monitor, type MonitorBody } from './draft.ts';
import { useReread, useViews } from './monitor_api.ts';
import { plain } from './monitor_words.ts';
import styles from './monitors.module.css';
import { PreviewPane } from './preview_pane.tsx';
import { QueryFields } from './query_fields.tsx';
import { ReceiverFields } from './receiver_fields.tsx';
import { ThresholdFields } from './threshold_fields.tsx';

interface EditorFormProps {
  /** The monitor that is changed; null: a new one. */
  monitor: Monitor | null;
  initial: Draft;
  /** Filters of the page before that a monitor does not have. */
  leftOut?: readonly string[];
}

/** Fields below which the API's refusals are shown. */
const FIELDS = ['name', 'window_minutes', 'for_minutes', 'threshold', 'measure', 'agg', 'to', 'webhook_id'];

/** Creates a monitor or changes it. */
function useSave(monitor: Monitor | null) {
  const { org_id } = useOrganization();
  const reread = useReread();
  const [, navigate] = useLocation();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: async (body: MonitorBody) => {
      if (monitor === null) return (await send(org_id, 'post', '/v1/monitors', { body, idempotencyKey })).data;
      const params = { path: { monitor_id: monitor.monitor_id } };
      return (await send(org_id, 'patch', '/v1/monitors/{monitor_id}', { params, body })).data;
    },
    onSuccess: async ({ monitor_id }) => {
      toast({ text: monitor === null ? 'The monitor was created.' : 'The monitor was saved.' });
      await reread();
      navigate(`/o/${encodeURIComponent(org_id)}/monitors/${encodeURIComponent(monitor_id)}`);
    },
  });
}

/** The editor. */
export function EditorForm({ monitor, initial, leftOut = [] }: EditorFormProps): ReactElement {
  const [draft, setDraft] = useState(initial);
  const [tried, setTried] = useState(false);
  const save = useSave(monitor);
  const views = useViews();
  const numbers = views.find(({ name }) => name === draft.view)?.filters ?? [];
  const { errors, form } = errorsOf(draft, tried, save.error);
  const onChange = (patch: Partial<Draft>): void => {
    setDraft((now) => ({ ...now, ...patch }));
    save.reset();
  };
  const onSave = (): void => {
    setTried(true);
    if (draft.name.trim() === '' || Object.keys(missingIn(draft)).length > 0 || save.isPending) return;
    save.mutate(bodyOf(draft, numbers));
  };
  useKeys('Monitor', [{ keys: 'Control+Enter', label: 'Save the monitor', run: onSave }]);
  const fields = { draft, errors, views, onChange };
  return (
    <div className={judges.editor}>
      <form
        className={judges.pane}
        aria-label="Monitor"
        onSubmit={(event) => {
          event.preventDefault();
          onSave();
        }}
      >
        <Typed
          label="Name"
          error={errors['name'] ?? null}
          maxLength={100}
          autoFocus={monitor === null}
          value={draft.name}
          onChange={(name) => {
            onChange({ name });
          }}
        />
        <QueryFields {...fields} />
        {leftOut.length > 0 && (
          <p className={styles.warning}>
            A monitor has no such filter, so it is left out: {leftOut.map(plain).join(', ')}.
          </p>
        )}
        <ThresholdFields {...fields} />
        <ReceiverFields {...fields} />
        {form && <ErrorPanel error={save.error} what="the monitor" />}
        <div className={judges.foot}>
          <Button look="primary" type="submit" keys="Control+Enter" busy={save.isPending}>
            {monitor === null ? 'Create monitor' : 'Save monitor'}
          </Button>
          <label className={judges.check}>
            <input
              type="checkbox"
              checked={draft.enabled}
              onChange={(event) => {
                onChange({ enabled: event.currentTarget.checked });
              }}
            />
            Evaluate every minute
          </label>
        </div>
      </form>
      <PreviewPane draft={draft} views={views} numbers={numbers} />
    </div>
  );
}

/** Returns the errors of fields: those of the API, and what is missing once somebody tried to save. */
function errorsOf(draft: Draft, tried: boolean, refusal: unknown): { errors: DraftErrors; form: boolean } {
  const missing = tried ? missingIn(draft) : {};
  const named = tried && draft.name.trim() === '' ? { name: 'Enter a name.' } : {};
  const { fields, form } = formErrors(refusal, FIELDS);
  return { errors: { ...named, ...missing, ...fields }, form: form !== null };
}
