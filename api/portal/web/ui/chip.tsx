// A chip: a value that can be removed, or a switch between "on" and "off".
import type { ReactElement, ReactNode } from 'react';
import styles from './chip.module.css';
import { cx } from './cx.ts';
import { Icon } from './icons.tsx';

interface ChipProps {
  children: ReactNode;
  /** Field of the value, shown before it. */
  field?: string;
  tone?: 'plain' | 'accent' | 'ok' | 'warn' | 'error';
  /** Called by the remove button, whose name is `removeLabel`. */
  onRemove?: () => void;
  removeLabel?: string;
  /** With onToggle the chip is a button that is pressed or not. */
  pressed?: boolean;
  onToggle?: () => void;
}

/** A chip. */
export function Chip(props: ChipProps): ReactElement {
  const { children, field, tone = 'plain', onRemove, removeLabel = 'Remove', pressed, onToggle } = props;
  const content = (
    <>
      {field !== undefined && <span className={styles.field}>{field}:</span>}
      <span className={styles.value}>{children}</span>
    </>
  );
  if (onToggle !== undefined) {
    return (
      <button
        type="button"
        className={cx(styles.chip, styles.toggle, styles[tone])}
        aria-pressed={pressed ?? false}
        onClick={onToggle}
      >
        {content}
      </button>
    );
  }
  return (
    <span className={cx(styles.chip, styles[tone])}>
      {content}
      {onRemove !== undefined && (
        <button type="button" className={styles.remove} aria-label={removeLabel} title={removeLabel} onClick={onRemove}>
          <Icon name="x" size={12} />
        </button>
      )}
    </span>
  );
}
