// The field of a find: the text, the number of matches, and the steps to the next and previous one.
import type { ReactElement, RefObject } from 'react';
import { count } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import styles from './text.module.css';

interface FindFieldProps {
  label: string;
  placeholder?: string;
  text: string;
  total: number;
  /** True while the texts are still searched. */
  isSearching?: boolean;
  /** Position of the shown match, from 0. */
  at: number;
  inputRef: RefObject<HTMLInputElement | null>;
  onChange: (text: string) => void;
  onStep: (step: 1 | -1) => void;
}

/** Enter goes to the next match, Shift+Enter to the previous one, Escape empties the field. */
export function FindField({
  label,
  placeholder = 'Find',
  text,
  total,
  isSearching = false,
  at,
  inputRef,
  onChange,
  onStep,
}: FindFieldProps): ReactElement {
  return (
    <div className={styles.find} role="search">
      <input
        ref={inputRef}
        type="search"
        aria-label={label}
        placeholder={placeholder}
        value={text}
        className={styles.findInput}
        onChange={(event) => {
          onChange(event.target.value);
        }}
        onKeyDown={(event) => {
          event.stopPropagation();
          if (event.key === 'Enter') {
            event.preventDefault();
            onStep(event.shiftKey ? -1 : 1);
          } else if (event.key === 'Escape') {
            event.preventDefault();
            if (text === '') event.currentTarget.blur();
            else onChange('');
          }
        }}
      />
      {text !== '' && (
        <>
          <span className={styles.findCount} role="status">
            {total === 0 ? (isSearching ? 'Searching texts' : 'No match') : `${count(at + 1)} of ${count(total)}`}
          </span>
          <Button
            look="quiet"
            icon="chevron-up"
            hint="Previous match"
            disabled={total === 0}
            onClick={() => {
              onStep(-1);
            }}
          />
          <Button
            look="quiet"
            icon="chevron-down"
            hint="Next match"
            disabled={total === 0}
            onClick={() => {
              onStep(1);
            }}
          />
        </>
      )}
    </div>
  );
}
