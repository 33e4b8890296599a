// The fields of one score of a new annotation queue.
import type { ReactElement } from 'react';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import type { ScoreDraft } from './queue_draft.ts';
import { optionsOf } from './score_keys.ts';
import styles from './annotate.module.css';

const TYPES = [
  ['categorical', 'One of some categories'],
  ['boolean', 'True or false'],
  ['numeric', 'A number'],
] as const;

interface ScoreFieldsProps {
  score: ScoreDraft;
  /** Place among the scores, from 1 on. */
  number: number;
  /** True: two traces are compared, so the value is the better one. */
  isPair: boolean;
  onChange: (patch: Partial<ScoreDraft>) => void;
  /** Null for the only score. */
  onRemove: (() => void) | null;
}

/** The fields. */
export function ScoreFields({ score, number, isPair, onChange, onRemove }: ScoreFieldsProps): ReactElement {
  const bound = (field: 'name' | 'options' | 'min' | 'max') => ({
    value: score[field],
    onChange: (event: { target: { value: string } }) => {
      onChange({ [field]: event.target.value });
    },
  });
  return (
    <fieldset className={styles.score}>
      <legend>Score {number}</legend>
      <div className={styles.columns}>
        <Field label="Score" hint="Its name on each trace">
          {(control) => <Input {...control} required maxLength={100} {...bound('name')} />}
        </Field>
        {!isPair && (
          <Field label="Value">
            {(control) => (
              <Select
                {...control}
                value={score.type}
                onChange={(event) => {
                  onChange({ type: event.currentTarget.value as ScoreDraft['type'] });
                }}
              >
                {TYPES.map(([type, words]) => (
                  <option key={type} value={type}>
                    {words}
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        {!isPair && score.type === 'numeric' && (
          <>
            <Field label="Smallest value">
              {(control) => <Input {...control} type="number" step="any" {...bound('min')} />}
            </Field>
            <Field label="Largest value">
              {(control) => <Input {...control} type="number" step="any" {...bound('max')} />}
            </Field>
          </>
        )}
      </div>
      {!isPair && score.type === 'categorical' && (
        <Field
          label="Categories"
          hint={`${count(optionsOf(score.options).length)} of at most 9, with commas between them`}
        >
          {(control) => <Input {...control} {...bound('options')} />}
        </Field>
      )}
      <Foot required={score.required} number={number} onChange={onChange} onRemove={onRemove} />
    </fieldset>
  );
}

type FootProps = Pick<ScoreFieldsProps, 'number' | 'onChange' | 'onRemove'> & { required: boolean };

function Foot({ required, number, onChange, onRemove }: FootProps): ReactElement {
  return (
    <div className={styles.actions}>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={required}
          onChange={(event) => {
            onChange({ required: event.currentTarget.checked });
          }}
        />
        Every answer needs it
      </label>
      {onRemove !== null && (
        <Button look="quiet" icon="x" hint={`Remove score ${number}`} onClick={onRemove}>
          Remove
        </Button>
      )}
    </div>
  );
}
