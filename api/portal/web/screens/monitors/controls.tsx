// The two kinds of fields of the editor: a choice of names, and a text that is typed.
import type { ReactElement } from 'react';
import { Field, Input, Select } from '../../ui/field.tsx';

interface Common {
  label: string;
  hint?: string;
  error?: string | null;
  value: string;
  onChange: (value: string) => void;
}

interface ChoiceProps extends Common {
  /** Values and their words. */
  options: readonly (readonly [value: string, words: string])[];
}

/** A choice of one value. */
export function Choice({ options, onChange, value, ...rest }: ChoiceProps): ReactElement {
  return (
    <Field {...rest}>
      {(control) => (
        <Select
          {...control}
          value={value}
          onChange={({ target }) => {
            onChange(target.value);
          }}
        >
          {options.map(([one, words]) => (
            <option key={one} value={one}>
              {words}
            </option>
          ))}
        </Select>
      )}
    </Field>
  );
}

interface TypedProps extends Common {
  maxLength: number;
  inputMode?: 'decimal' | 'numeric';
  placeholder?: string;
  autoFocus?: boolean;
}

/** A text of one line. */
export function Typed(props: TypedProps): ReactElement {
  const { label, hint, error, value, onChange, ...input } = props;
  return (
    <Field label={label} {...(hint === undefined ? {} : { hint })} error={error ?? null}>
      {(control) => (
        <Input
          {...control}
          {...input}
          value={value}
          onChange={({ target }) => {
            onChange(target.value);
          }}
        />
      )}
    </Field>
  );
}
