// The scores of an item with their keys, the comment, and what can be done with the item.
import type { ReactElement, RefObject } from 'react';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { Input } from '../../ui/field.tsx';
import { ToDatasetButton } from '../datasets/to_dataset_button.tsx';
import type { Queue } from './annotate_api.ts';
import { type Choice, choicesOf, type ScoreSpec, type Values } from './score_keys.ts';
import type { Labels } from './use_labels.ts';
import styles from './annotate.module.css';

interface LabelFormProps {
  queue: Queue;
  labels: Labels;
  comment: RefObject<HTMLTextAreaElement | null>;
  /** The score that digits act on: its choices show their keys. */
  active: string | null;
  onChoose: (name: string, value: Choice['value']) => void;
  /** Called when the focus reaches a score: digits act on it. */
  onReach: (name: string) => void;
  onSave: () => void;
}

/** The panel beside the trace. */
export function LabelForm({ queue, labels, comment, active, onChoose, onReach, onSave }: LabelFormProps): ReactElement {
  const { draft, setDraft, save, back, undo, canGoBack, counts } = labels;
  return (
    <form
      className={styles.form}
      aria-label="Scores"
      onSubmit={(event) => {
        event.preventDefault();
        onSave();
      }}
    >
      {counts !== null && <Progress {...counts} />}
      {queue.instructions !== '' && (
        <p className={styles.said} dir="auto">
          {queue.instructions}
        </p>
      )}
      {queue.scores.map((spec) => (
        <ScoreField
          key={spec.name}
          spec={spec}
          values={draft.values}
          isActive={spec.name === active}
          onChoose={onChoose}
          onReach={onReach}
        />
      ))}
      <label className={styles.comment}>
        <span>
          Comment <kbd>w</kbd>
        </span>
        <textarea
          ref={comment}
          rows={3}
          maxLength={2000}
          value={draft.comment}
          onChange={(event) => {
            setDraft({ ...draft, comment: event.currentTarget.value });
          }}
        />
      </label>
      <div className={styles.actions}>
        <Button type="submit" look="primary" keys="Enter">
          Save and next
        </Button>
        <Button
          keys="s"
          onClick={() => {
            save(true);
          }}
        >
          Skip
        </Button>
        <Button keys="Backspace" onClick={back} disabled={!canGoBack}>
          Back
        </Button>
        <Button keys="u" onClick={undo} disabled={!canGoBack}>
          Undo
        </Button>
        <ToDatasetButton targets={() => ({ trace_ids: labels.items[0]?.trace_ids ?? [] })} />
      </div>
    </form>
  );
}

function Progress({ done, total }: { done: number; total: number }): ReactElement {
  return (
    <div className={styles.progress}>
      <progress max={total} value={done} aria-label="Items done" />
      <span role="status">
        {count(done)} of {count(total)}
      </span>
    </div>
  );
}

interface ScoreFieldProps extends Pick<LabelFormProps, 'onChoose' | 'onReach'> {
  spec: ScoreSpec;
  values: Values;
  isActive: boolean;
}

function ScoreField({ spec, values, isActive, onChoose, onReach }: ScoreFieldProps): ReactElement {
  const choices = choicesOf(spec);
  const value = values[spec.name];
  const title = (
    <>
      {spec.name}
      {!spec.required && <span className={styles.quiet}> optional</span>}
    </>
  );
  if (choices === null && spec.type === 'numeric')
    return (
      <label className={styles.comment}>
        <b>{title}</b>
        <Input
          id={`score-${spec.name}`}
          type="number"
          step="any"
          min={spec.range.min}
          max={spec.range.max}
          value={value === undefined ? '' : String(value)}
          onFocus={() => {
            onReach(spec.name);
          }}
          onChange={(event) => {
            const number = event.currentTarget.valueAsNumber;
            if (!Number.isNaN(number)) onChoose(spec.name, number);
          }}
        />
      </label>
    );
  return (
    <fieldset className={styles.choices}>
      <legend>{title}</legend>
      {choices?.map((choice) => (
        <label key={choice.key} className={styles.choice}>
          <input
            type="radio"
            name={spec.name}
            checked={value === choice.value}
            onFocus={() => {
              onReach(spec.name);
            }}
            onChange={() => {
              onChoose(spec.name, choice.value);
            }}
          />
          <span dir="auto">{choice.label}</span>
          {isActive && <kbd>{choice.key}</kbd>}
        </label>
      ))}
    </fieldset>
  );
}
