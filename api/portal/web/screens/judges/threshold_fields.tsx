// The thresholds of a draft: two numbers, and a strip of the scale that shows where they lie among
// the scores of the preview.
import type { ReactElement } from 'react';
import { Field, Input } from '../../ui/field.tsx';
import { itemsOf } from './draft.ts';
import styles from './judges.module.css';
import type { DraftFieldsProps } from './rule_fields.tsx';

const WIDTH = 480;
const HEIGHT = 36;
const MARGIN = 16;
const LINE = 22;

/** The fields and the strip. */
export function ThresholdFields({
  draft,
  errors,
  onChange,
  scores,
}: DraftFieldsProps & { scores: readonly number[] }): ReactElement {
  return (
    <>
      <div className={styles.fields}>
        <Field label="Pass from" hint="A score of at least this passes" error={errors['threshold.pass'] ?? null}>
          {(control) => (
            <Input
              {...control}
              inputMode="decimal"
              value={draft.pass}
              onChange={(event) => {
                onChange({ pass: event.currentTarget.value });
              }}
            />
          )}
        </Field>
        <Field
          label="Warn from (optional)"
          hint="Lower scores fail and send judge.threshold_breach"
          error={errors['threshold.warn'] ?? null}
        >
          {(control) => (
            <Input
              {...control}
              inputMode="decimal"
              value={draft.warn}
              onChange={(event) => {
                onChange({ warn: event.currentTarget.value });
              }}
            />
          )}
        </Field>
      </div>
      <Strip
        scale={draft.kind === 'llm' ? itemsOf(draft.scale).map(Number) : [0, 1]}
        pass={Number(draft.pass)}
        warn={draft.warn.trim() === '' ? null : Number(draft.warn)}
        scores={scores}
      />
    </>
  );
}

interface StripProps {
  scale: readonly number[];
  pass: number;
  warn: number | null;
  scores: readonly number[];
}

/** The scale as a line, the thresholds as ticks, and each score of the preview as a dot of its size. */
function Strip({ scale, pass, warn, scores }: StripProps): ReactElement | null {
  const [low = 0, high = low] = [scale[0], scale.at(-1)];
  if (![low, high, pass].every(Number.isFinite) || high <= low) return null;
  const x = (value: number): number =>
    MARGIN + ((Math.min(high, Math.max(low, value)) - low) / (high - low)) * (WIDTH - 2 * MARGIN);
  const counts = [...Map.groupBy(scores, (score) => score)].map(([score, same]) => ({ score, count: same.length }));
  const words = counts
    .toSorted((a, b) => a.score - b.score)
    .map(({ score, count }) => `${count} with score ${score}`)
    .join(', ');
  const name = `Scale from ${low} to ${high}; pass from ${pass}${warn === null ? '' : `, warn from ${warn}`}. ${
    words === '' ? 'No scores yet.' : `Preview: ${words}.`
  }`;
  return (
    <svg className={styles.strip} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} role="img" aria-label={name}>
      <line x1={x(low)} x2={x(warn ?? pass)} y1={LINE} y2={LINE} stroke="var(--error)" strokeWidth={3} />
      {warn !== null && <line x1={x(warn)} x2={x(pass)} y1={LINE} y2={LINE} stroke="var(--warn)" strokeWidth={3} />}
      <line x1={x(pass)} x2={x(high)} y1={LINE} y2={LINE} stroke="var(--ok)" strokeWidth={3} />
      {[pass, ...(warn === null ? [] : [warn])].map((at) => (
        <line key={at} x1={x(at)} x2={x(at)} y1={LINE - 8} y2={LINE + 8} stroke="var(--text)" />
      ))}
      {counts.map(({ score, count }) => (
        <circle
          key={score}
          cx={x(score)}
          cy={LINE}
          r={3 + Math.sqrt(count)}
          fill={score >= pass ? 'var(--ok)' : warn !== null && score >= warn ? 'var(--warn)' : 'var(--error)'}
          stroke="var(--surface)"
        />
      ))}
      {[low, high].map((end) => (
        <text key={end} x={x(end)} y={11} fontSize={11} fill="var(--text-3)" textAnchor={end === low ? 'start' : 'end'}>
          {end}
        </text>
      ))}
    </svg>
  );
}
