// The fields of an LLM judge: the model, the template of the prompt, the rubric and the cooldown.
import type { ReactElement } from 'react';
import { Editor } from '../../editor/editor.tsx';
import { variableNames } from '../../editor/variables.ts';
import { Field, Input } from '../../ui/field.tsx';
import { TEMPLATE_VARIABLES } from './draft.ts';
import inputs from '../../ui/field.module.css';
import styles from './judges.module.css';
import type { DraftFieldsProps } from './rule_fields.tsx';

/** Parts of an item, such as {{input.question}}, are variables too. */
const isKnown = (name: string): boolean =>
  (TEMPLATE_VARIABLES as readonly string[]).includes(name) || /^(?:input|expected)\../.test(name);

/** The fields. */
export function ModelFields({ draft, errors, onChange, onSave }: DraftFieldsProps): ReactElement {
  const used = variableNames(draft.template);
  const unknown = used.filter((name) => !isKnown(name));
  return (
    <>
      <Editor
        label="Template of the prompt"
        language="template"
        value={draft.template}
        variables={[...TEMPLATE_VARIABLES, ...used.filter(isKnown)]}
        hint="Variables: {{prompt}}, {{response}}, {{criteria}}, {{scale}}, {{trace_id}}. In dataset runs also {{input}} and {{expected}}."
        rows={8}
        rowsMax={20}
        error={
          errors['prompt_template'] ??
          (unknown.length === 0 ? null : `Not a variable: ${unknown.join(', ')}. It stays in the prompt as it is.`)
        }
        onChange={(template) => {
          onChange({ template });
        }}
        onSave={onSave}
      />
      <Field label="Criteria, one a line" error={errors['rubric'] ?? null}>
        {(control) => (
          <textarea
            {...control}
            rows={3}
            className={inputs.input}
            value={draft.criteria}
            onChange={(event) => {
              onChange({ criteria: event.currentTarget.value });
            }}
          />
        )}
      </Field>
      <div className={styles.fields}>
        <ModelInput name="model" label="Model" value={draft.model} error={errors['model']} onChange={onChange} />
        <ModelInput
          name="scale"
          label="Scale"
          hint="Rising numbers, for example 1, 2, 3"
          value={draft.scale}
          error={errors['rubric.scale']}
          onChange={onChange}
        />
        <ModelInput
          name="cooldown"
          label="Cooldown, seconds"
          hint="Between two live judgements of one agent"
          value={draft.cooldown}
          error={errors['cooldown_seconds']}
          onChange={onChange}
        />
      </div>
    </>
  );
}

interface ModelInputProps {
  name: 'model' | 'scale' | 'cooldown';
  label: string;
  hint?: string;
  value: string;
  error: string | undefined;
  onChange: DraftFieldsProps['onChange'];
}

function ModelInput({ name, label, hint, value, error, onChange }: ModelInputProps): ReactElement {
  return (
    <Field label={label} error={error ?? null} {...(hint === undefined ? {} : { hint })}>
      {(control) => (
        <Input
          {...control}
          value={value}
          onChange={(event) => {
            onChange({ [name]: event.currentTarget.value });
          }}
        />
      )}
    </Field>
  );
}
