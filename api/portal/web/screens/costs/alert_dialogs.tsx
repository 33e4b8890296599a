// The dialogs of alerts: one threshold, and the channels of all alerts.
import { type ReactElement, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { type Alerts, replacing, type Threshold, useSaveAlerts } from './alert_api.ts';
import { RESOURCES, WORDS } from './amounts.ts';
import styles from './costs.module.css';
import { formErrors } from './field_error.ts';

const URL_CHARS_MAX = 2048;
const PERCENT = /^\d{1,3}(?:\.\d{1,6})?$/;
const SEVERITIES: readonly Threshold['severity'][] = ['info', 'warning', 'critical'];
const DEFAULT: Threshold = { resource: 'tokens', percent: 80, severity: 'warning' };

interface ThresholdDialogProps {
  /** The threshold to change; null for a new one. */
  threshold: Threshold | null;
  onClose: () => void;
}

/** The dialog of one alert. */
export function ThresholdDialog({ threshold, onClose }: ThresholdDialogProps): ReactElement {
  const [draft, setDraft] = useState(threshold ?? DEFAULT);
  const [typed, setTyped] = useState(String(draft.percent));
  const save = useSaveAlerts(onClose);
  const isReady = PERCENT.test(typed.trim());
  const { fields, form } = formErrors(save.error, ['percent']);
  const submit = (): void => {
    if (isReady && !save.isPending) save.mutate(replacing(threshold, { ...draft, percent: Number(typed) }));
  };
  return (
    <Dialog
      title={threshold === null ? 'Add alert' : 'Edit alert'}
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={!isReady} busy={save.isPending}>
            {threshold === null ? 'Add alert' : 'Save alert'}
          </Button>
        </>
      }
    >
      <ThresholdFields
        draft={draft}
        typed={typed}
        percentError={isReady ? (fields['percent'] ?? null) : 'Must be a number above 0 and below 100'}
        formError={form}
        onDraft={setDraft}
        onTyped={setTyped}
      />
    </Dialog>
  );
}

interface ThresholdFieldsProps {
  draft: Threshold;
  /** The percentage as it is typed. */
  typed: string;
  percentError: string | null;
  formError: string | null;
  onDraft: (draft: Threshold) => void;
  onTyped: (percent: string) => void;
}

function ThresholdFields(props: ThresholdFieldsProps): ReactElement {
  const { draft, typed, percentError, formError, onDraft, onTyped } = props;
  return (
    <div className={styles.form}>
      <Field label="Resource">
        {(control) => (
          <Select
            {...control}
            value={draft.resource}
            onChange={({ target }) => {
              onDraft({ ...draft, resource: RESOURCES.find((one) => one === target.value) ?? 'tokens' });
            }}
          >
            {RESOURCES.map((resource) => (
              <option key={resource} value={resource}>
                {WORDS[resource].name}
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field
        label="Percent of the limit"
        hint="Of the hard limit, or of the soft limit where no hard limit is set. Above 0 and below 100"
        error={percentError}
      >
        {(control) => (
          <Input
            {...control}
            inputMode="decimal"
            value={typed}
            onChange={({ target }) => {
              onTyped(target.value);
            }}
          />
        )}
      </Field>
      <Field label="Severity">
        {(control) => (
          <Select
            {...control}
            value={draft.severity}
            onChange={({ target }) => {
              onDraft({ ...draft, severity: SEVERITIES.find((one) => one === target.value) ?? 'warning' });
            }}
          >
            {SEVERITIES.map((severity) => (
              <option key={severity}>{severity}</option>
            ))}
          </Select>
        )}
      </Field>
      {formError !== null && (
        <p role="alert" className={styles.error}>
          {formError}
        </p>
      )}
    </div>
  );
}

interface ChannelsDialogProps {
  alerts: Alerts;
  onClose: () => void;
  /** Called with the key that signs the webhook requests, where the address is new. */
  onSecret: (secret: string) => void;
}

/** The dialog of the channels. */
export function ChannelsDialog({ alerts, onClose, onSecret }: ChannelsDialogProps): ReactElement {
  const [email, setEmail] = useState(alerts.channels.includes('email') || alerts.updated_at === null);
  const [webhook, setWebhook] = useState(alerts.channels.includes('webhook'));
  const [url, setUrl] = useState(alerts.webhook_url ?? '');
  const save = useSaveAlerts(({ secret }) => {
    if (secret === undefined) onClose();
    else onSecret(secret);
  });
  const { fields, form } = formErrors(save.error, ['webhook_url']);
  const submit = (): void => {
    if (save.isPending) return;
    save.mutate((newest) => ({
      ...newest,
      channels: [...(email ? (['email'] as const) : []), ...(webhook ? (['webhook'] as const) : [])],
      webhook_url: url.trim() === '' ? null : url.trim(),
    }));
  };
  return (
    <Dialog
      title="Channels of alerts"
      onClose={onClose}
      onSubmit={submit}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" busy={save.isPending}>
            Save channels
          </Button>
        </>
      }
    >
      <div className={styles.form}>
        <Check label="E-mail to the owner of the organization" checked={email} onChange={setEmail} />
        <Check label="Webhook" checked={webhook} onChange={setWebhook} />
        <Field
          label="Address of the webhook"
          hint="Receives budget.threshold_breach, signed with a secret that is shown once"
          error={fields['webhook_url'] ?? null}
        >
          {(control) => (
            <Input
              {...control}
              type="url"
              maxLength={URL_CHARS_MAX}
              placeholder="https://"
              value={url}
              onChange={({ target }) => {
                setUrl(target.value);
              }}
            />
          )}
        </Field>
        {form !== null && (
          <p role="alert" className={styles.error}>
            {form}
          </p>
        )}
      </div>
    </Dialog>
  );
}

interface CheckProps {
  label: string;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

function Check({ label, checked, onChange }: CheckProps): ReactElement {
  return (
    <label className={styles.check}>
      <input
        type="checkbox"
        checked={checked}
        onChange={({ target }) => {
          onChange(target.checked);
        }}
      />
      {label}
    </label>
  );
}
