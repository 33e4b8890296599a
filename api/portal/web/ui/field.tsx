// A labelled field with its explanation and its error. The error is read out with the field.
import { type ComponentPropsWithRef, type ReactElement, type ReactNode, useId } from 'react';
import { cx } from './cx.ts';
import styles from './field.module.css';

interface FieldProps {
  label: string;
  hint?: ReactNode;
  error?: string | null;
  /** The control; it takes the given id, description and validity. */
  children: (control: {
    id: string;
    'aria-describedby': string | undefined;
    'aria-invalid': true | undefined;
  }) => ReactElement;
}

/** A field with a label. */
export function Field({ label, hint, error = null, children }: FieldProps): ReactElement {
  const id = useId();
  const notes = [hint === undefined ? '' : `${id}-hint`, error === null ? '' : `${id}-error`].filter(
    (one) => one !== '',
  );
  return (
    <div className={styles.field}>
      <label htmlFor={id} className={styles.label}>
        {label}
      </label>
      {children({
        id,
        'aria-describedby': notes.length === 0 ? undefined : notes.join(' '),
        'aria-invalid': error === null ? undefined : true,
      })}
      {hint !== undefined && (
        <div id={`${id}-hint`} className={styles.hint}>
          {hint}
        </div>
      )}
      {error !== null && (
        <p id={`${id}-error`} className={styles.error}>
          {error}
        </p>
      )}
    </div>
  );
}

/** A text field. */
export function Input({ className, ...rest }: ComponentPropsWithRef<'input'>): ReactElement {
  return <input autoComplete="off" spellCheck={false} className={cx(styles.input, className)} {...rest} />;
}

/** A choice of a few values. */
export function Select({ className, ...rest }: ComponentPropsWithRef<'select'>): ReactElement {
  return <select className={cx(styles.input, className)} {...rest} />;
}
