// The fields of a rule: its type, the parts of a trace that it reads, and the parameter of its type.
import type { ReactElement } from 'react';
import { Editor } from '../../editor/editor.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { type Draft, type DraftErrors, type OutcomeName, RULES, type RuleType } from './draft.ts';
import styles from './judges.module.css';

export interface DraftFieldsProps {
  draft: Draft;
  errors: DraftErrors;
  onChange: (patch: Partial<Draft>) => void;
  /** Called by Ctrl+Enter in an editor, which keeps the key to itself. */
  onSave: () => void;
}

const OUTCOMES: readonly OutcomeName[] = ['success', 'error', 'timeout'];

/** The fields. */
export function RuleFields(props: DraftFieldsProps): ReactElement {
  const { draft, errors, onChange } = props;
  const { readsFields } = RULES[draft.type];
  return (
    <>
      <div className={styles.stack}>
        <Field label="Rule" error={errors['rule.type'] ?? null}>
          {(control) => (
            <Select
              {...control}
              value={draft.type}
              onChange={(event) => {
                onChange({ type: event.currentTarget.value as RuleType });
              }}
            >
              {Object.entries(RULES).map(([type, { label }]) => (
                <option key={type} value={type}>
                  {label}
                </option>
              ))}
            </Select>
          )}
        </Field>
        {readsFields && (
          <Field
            label="Parts of the trace"
            hint="For example response, prompt or attributes.region"
            error={errors['rule.fields'] ?? null}
          >
            {(control) => (
              <Input
                {...control}
                value={draft.fields}
                onChange={(event) => {
                  onChange({ fields: event.currentTarget.value });
                }}
              />
            )}
          </Field>
        )}
      </div>
      <Parameter {...props} />
    </>
  );
}

function Parameter({ draft, errors, onChange, onSave }: DraftFieldsProps): ReactElement | null {
  const { parameter } = RULES[draft.type];
  if (parameter === 'outcomes')
    return (
      <fieldset className={styles.choices}>
        <legend>Accepted outcomes</legend>
        {OUTCOMES.map((outcome) => (
          <label key={outcome} className={styles.check}>
            <input
              type="checkbox"
              checked={draft.outcomes.includes(outcome)}
              onChange={(event) => {
                const kept = draft.outcomes.filter((name) => name !== outcome);
                onChange({ outcomes: event.currentTarget.checked ? [...kept, outcome] : kept });
              }}
            />
            {outcome}
          </label>
        ))}
        {errors['rule.outcomes'] !== undefined && <p role="alert">{errors['rule.outcomes']}</p>}
      </fieldset>
    );
  if (parameter === 'schema')
    return (
      <Editor
        label="JSON schema"
        language="json"
        value={draft.schema}
        rows={6}
        rowsMax={16}
        error={errors['rule.schema'] ?? null}
        onChange={(schema) => {
          onChange({ schema });
        }}
        onSave={onSave}
      />
    );
  if (parameter === 'max') return <Maximum draft={draft} errors={errors} onChange={onChange} onSave={onSave} />;
  if (parameter === null) return null;
  const isPattern = parameter === 'pattern';
  return (
    <Field
      label={isPattern ? 'Pattern' : 'Text'}
      error={errors[`rule.${parameter}`] ?? null}
      {...(isPattern ? { hint: 'A regular expression in RE2 syntax. Begin with (?i) to ignore case.' } : {})}
    >
      {(control) => (
        <Input
          {...control}
          value={isPattern ? draft.pattern : draft.value}
          onChange={(event) => {
            onChange({ [parameter]: event.currentTarget.value });
          }}
        />
      )}
    </Field>
  );
}

const UNITS: Partial<Record<RuleType, string>> = {
  max_length: 'Maximum length, characters',
  max_duration_ms: 'Maximum duration, milliseconds',
  max_cost_usd: 'Maximum cost, US dollars',
};

function Maximum({ draft, errors, onChange }: DraftFieldsProps): ReactElement {
  return (
    <Field label={UNITS[draft.type] ?? 'Maximum'} error={errors['rule.max'] ?? null}>
      {(control) => (
        <Input
          {...control}
          inputMode="decimal"
          value={draft.max}
          onChange={(event) => {
            onChange({ max: event.currentTarget.value });
          }}
        />
      )}
    </Field>
  );
}
