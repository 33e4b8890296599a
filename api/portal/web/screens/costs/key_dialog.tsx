// The dialog that sets the limits of an API key.
import { type ReactElement, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { WORDS } from './amounts.ts';
import styles from './costs.module.css';
import { formErrors } from './field_error.ts';
import { type ApiKey, useSaveKeyLimits } from './key_api.ts';
import { draftOf, KEY_PERIODS, KEY_RESOURCES, type KeyDraft, limitsOf } from './key_draft.ts';

const NOT_A_LIMIT = 'Must be a number such as 600 or 1.5k, or empty for no limit';
/** Fields of the API by the fields of the draft. */
const NAMES: Readonly<Partial<Record<keyof KeyDraft, string>>> = {
  models: 'models',
  requests: 'requests_per_minute',
  tokens: 'tokens_per_minute',
  limit: 'hard_limit',
  until: 'expires_at',
};

interface KeyDialogProps {
  apiKey: ApiKey;
  onClose: () => void;
}

/** The dialog. */
export function KeyDialog({ apiKey, onClose }: KeyDialogProps): ReactElement {
  const [draft, setDraft] = useState(() => draftOf(apiKey));
  const save = useSaveKeyLimits(onClose);
  const limits = limitsOf(draft, apiKey);
  const wrong = 'wrong' in limits ? limits.wrong : null;
  return (
    <Dialog
      title={`Limits of ${apiKey.name}`}
      form="wide"
      onClose={onClose}
      onSubmit={() => {
        if (!('wrong' in limits) && !save.isPending) save.mutate({ key: apiKey, limits });
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" keys="Ctrl+Enter" disabled={wrong !== null} busy={save.isPending}>
            Save limits
          </Button>
        </>
      }
    >
      <KeyLimitFields
        draft={draft}
        wrong={wrong}
        error={save.error}
        focused
        onChange={(patch) => {
          setDraft({ ...draft, ...patch });
        }}
      />
    </Dialog>
  );
}

interface FieldsProps {
  draft: KeyDraft;
  wrong: keyof KeyDraft | null;
  error: unknown;
  /** True: the first field has the focus when the dialog opens. */
  focused?: boolean;
  onChange: (patch: Partial<KeyDraft>) => void;
}

/** Marks the field that has the focus when the dialog opens. */
const opensHere = (field: HTMLInputElement | null): void => {
  field?.setAttribute('autofocus', '');
};

/** The fields of the limits of a key. */
export function KeyLimitFields({ draft, wrong, error, focused = false, onChange }: FieldsProps): ReactElement {
  const errors = formErrors(error, Object.values(NAMES));
  const text = (name: 'models' | 'requests' | 'tokens' | 'limit' | 'until' | 'user_id' | 'department') => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [name]: event.target.value });
    },
  });
  const errorOf = (name: keyof KeyDraft): string | null =>
    wrong === name ? NOT_A_LIMIT : (errors.fields[NAMES[name] ?? ''] ?? null);
  return (
    <div className={styles.form}>
      <Field
        label="Models"
        hint="Globs such as gpt-4o*, separated by commas. Empty: every model"
        error={errorOf('models')}
      >
        {(control) => <Input {...control} ref={focused ? opensHere : null} {...text('models')} />}
      </Field>
      <Field label="Requests a minute" hint="Empty: no limit" error={errorOf('requests')}>
        {(control) => <Input {...control} inputMode="numeric" {...text('requests')} />}
      </Field>
      <Field label="Tokens a minute" hint="Empty: no limit" error={errorOf('tokens')}>
        {(control) => <Input {...control} inputMode="numeric" {...text('tokens')} />}
      </Field>
      <BudgetFields draft={draft} error={errorOf('limit')} onChange={onChange} />
      <Field
        label="Last day"
        hint="UTC. The key is rejected from the next day on. Empty: no expiry"
        error={errorOf('until')}
      >
        {(control) => <Input {...control} type="date" {...text('until')} />}
      </Field>
      <Field label="User label" hint="user_id of events that name none">
        {(control) => <Input {...control} maxLength={512} {...text('user_id')} />}
      </Field>
      <Field label="Department label" hint="Department of events that name none">
        {(control) => <Input {...control} maxLength={512} {...text('department')} />}
      </Field>
      <Field label="What the gateway stores" hint="Of calls with this key">
        {(control) => (
          <Select
            {...control}
            value={draft.capture}
            onChange={({ target }) => {
              onChange({ capture: target.value === 'usage' ? 'usage' : 'full' });
            }}
          >
            <option value="full">Prompts, responses and usage</option>
            <option value="usage">Usage alone: no prompt, response or attribute value</option>
          </Select>
        )}
      </Field>
      {errors.form !== null && (
        <p role="alert" className={styles.error}>
          {errors.form}
        </p>
      )}
    </div>
  );
}

interface BudgetFieldsProps extends Pick<FieldsProps, 'draft' | 'onChange'> {
  error: string | null;
}

function BudgetFields({ draft, error, onChange }: BudgetFieldsProps): ReactElement {
  return (
    <>
      <Field label="Budget" hint="Empty: no budget" error={error}>
        {(control) => (
          <Input
            {...control}
            inputMode="decimal"
            value={draft.limit}
            onChange={({ target }) => {
              onChange({ limit: target.value });
            }}
          />
        )}
      </Field>
      <Field label="Resource of the budget">
        {(control) => (
          <Select
            {...control}
            value={draft.resource}
            onChange={({ target }) => {
              onChange({ resource: KEY_RESOURCES.find((one) => one === target.value) ?? 'cost_usd' });
            }}
          >
            {KEY_RESOURCES.map((one) => (
              <option key={one} value={one}>
                {WORDS[one].name} ({WORDS[one].unit})
              </option>
            ))}
          </Select>
        )}
      </Field>
      <Field label="Period of the budget">
        {(control) => (
          <Select
            {...control}
            value={draft.period}
            onChange={({ target }) => {
              onChange({ period: KEY_PERIODS.find((one) => one === target.value) ?? 'month' });
            }}
          >
            {KEY_PERIODS.map((one) => (
              <option key={one} value={one}>
                A {one}
              </option>
            ))}
          </Select>
        )}
      </Field>
    </>
  );
}
