// The scope of a draft: which complete traces are judged, and how many there were in the last day.
import type { ReactElement } from 'react';
import { count } from '../../text/format.ts';
import { Field, Input } from '../../ui/field.tsx';
import styles from './judges.module.css';
import type { DraftFieldsProps } from './rule_fields.tsx';

const PARTS = [
  { name: 'agent_id', label: 'Agents' },
  { name: 'tags', label: 'Tags, any of' },
  { name: 'source_format', label: 'Source formats' },
] as const;

/** The fields, and the number of matching traces. */
export function ScopeFields({
  draft,
  errors,
  onChange,
  inADay,
}: DraftFieldsProps & { inADay: number | null }): ReactElement {
  return (
    <section aria-labelledby="scope" className={styles.scope}>
      <h2 id="scope">Scope</h2>
      <p role="status" className={styles.quiet}>
        {inADay === null
          ? 'Counting the traces in scope'
          : `Matches ${count(inADay)} ${inADay === 1 ? 'trace' : 'traces'} of the last 24 h`}
      </p>
      <div className={styles.fields}>
        {PARTS.map(({ name, label }) => (
          <Field key={name} label={label} error={errors[`scope.${name}`] ?? null}>
            {(control) => (
              <Input
                {...control}
                value={draft[name]}
                placeholder="All"
                onChange={(event) => {
                  onChange({ [name]: event.currentTarget.value });
                }}
              />
            )}
          </Field>
        ))}
      </div>
    </section>
  );
}
