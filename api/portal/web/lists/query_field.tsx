// The query field of a list: filters as chips, and a text for names of filters and words to search for.
// Suggestions come from the facets that are already loaded; choosing one adds a chip.
import { type KeyboardEvent, type ReactElement, type RefObject, useId, useState } from 'react';
import { cx } from '../ui/cx.ts';
import { Icon } from '../ui/icons.tsx';
import { FilterChips } from './chips.tsx';
import { withFilter, type ListUrl } from './list_url.ts';
import { applyQueryText, chipsOf, removeValue } from './query_text.ts';
import styles from './query_field.module.css';
import { suggestionsFor, type Suggestion, type SuggestedValue } from './suggestions.ts';
import type { ChangeList } from './use_list_url.ts';

interface QueryFieldProps {
  state: ListUrl;
  onChange: ChangeList;
  /** Values that the facets know, the commonest first. */
  values: readonly SuggestedValue[];
  /** The input, which `/` focuses. */
  input: RefObject<HTMLInputElement | null>;
}

/** State of the field: the typed text, its suggestions, and the handlers of the keys. */
function useFieldText({ state, onChange, values }: QueryFieldProps) {
  const search = state.filters.get('search')?.[0] ?? '';
  const [typed, setTyped] = useState<{ text: string; of: string } | null>(null);
  const text = typed !== null && typed.of === search ? typed.text : search;
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const suggestions = open ? suggestionsFor(text, values) : [];
  const close = (): void => {
    setTyped(null);
    setOpen(false);
    setAt(-1);
  };
  const write = (next: string): void => {
    setTyped({ text: next, of: search });
    setOpen(true);
    setAt(-1);
  };
  const commit = (next: string): void => {
    close();
    onChange((now) => applyQueryText(now, next));
  };
  const choose = ({ text: next, complete }: Suggestion): void => {
    if (complete) commit(next);
    else write(next);
  };
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>): void => {
    const { key, currentTarget } = event;
    const picked = suggestions[at];
    if (key === 'ArrowDown' || key === 'ArrowUp') {
      setOpen(true);
      setAt(nextIndex(at, key === 'ArrowDown' ? 1 : -1, suggestions.length));
    } else if (key === 'Enter') {
      if (picked === undefined) commit(text);
      else choose(picked);
    } else if (key === 'Escape' && (open || typed !== null)) close();
    else if (key === 'Escape') currentTarget.blur();
    else if (key === 'Backspace' && text === '') removeLast(state, onChange);
    else return;
    if (key !== 'Backspace') event.preventDefault();
    event.stopPropagation();
  };
  const onBlur = (): void => {
    setOpen(false);
    if (typed !== null && text !== search) commit(text);
  };
  const onFocus = (): void => {
    setOpen(true);
  };
  return { text, suggestions, at, close, write, choose, onKeyDown, onBlur, onFocus };
}

/** The field. Its text follows the address until somebody types. */
export function QueryField(props: QueryFieldProps): ReactElement {
  const { state, onChange, input } = props;
  const field = useFieldText(props);
  const { text, suggestions, at } = field;
  const list = useId();
  return (
    <search className={styles.field}>
      <Icon name="search" />
      <FilterChips state={state} onChange={onChange} />
      <span className={styles.anchor}>
        <input
          ref={input}
          className={styles.input}
          type="text"
          role="combobox"
          aria-label="Filter and search traces"
          aria-expanded={suggestions.length > 0}
          aria-controls={list}
          aria-autocomplete="list"
          aria-activedescendant={suggestions[at] === undefined ? undefined : `${list}-${at}`}
          aria-keyshortcuts="/"
          placeholder={chipsOf(state).length === 0 ? 'Words, "phrases" or agent_id:planner' : ''}
          autoComplete="off"
          spellCheck={false}
          value={text}
          onChange={(event) => {
            field.write(event.currentTarget.value);
          }}
          onFocus={field.onFocus}
          onBlur={field.onBlur}
          onKeyDown={field.onKeyDown}
        />
        <Suggestions id={list} suggestions={suggestions} at={at} onChoose={field.choose} />
      </span>
      {text !== '' && (
        <ClearButton
          onClear={() => {
            field.close();
            onChange((now) => withFilter(now, 'search', []));
            input.current?.focus();
          }}
        />
      )}
    </search>
  );
}

function ClearButton({ onClear }: { onClear: () => void }): ReactElement {
  return (
    <button
      type="button"
      className={styles.clear}
      aria-label="Clear the search"
      title="Clear the search"
      onPointerDown={(event) => {
        event.preventDefault();
      }}
      onClick={onClear}
    >
      <Icon name="x" size={12} />
    </button>
  );
}

function Suggestions({
  id,
  suggestions,
  at,
  onChoose,
}: {
  id: string;
  suggestions: readonly Suggestion[];
  at: number;
  onChoose: (suggestion: Suggestion) => void;
}): ReactElement {
  return (
    <ul id={id} role="listbox" aria-label="Suggestions" className={styles.list} hidden={suggestions.length === 0}>
      {suggestions.map((suggestion, index) => (
        <li
          key={suggestion.text}
          id={`${id}-${index}`}
          role="option"
          aria-selected={index === at}
          className={cx(styles.option, index === at && styles.current)}
          onPointerDown={(event) => {
            event.preventDefault();
            onChoose(suggestion);
          }}
        >
          <span className={styles.label}>{suggestion.label}</span>
          <span className={styles.aside}>{suggestion.aside}</span>
        </li>
      ))}
    </ul>
  );
}

/** Returns the next place of a list; −1 is the field itself. */
const nextIndex = (at: number, step: number, length: number): number =>
  ((at + 1 + step + length + 1) % (length + 1)) - 1;

function removeLast(state: ListUrl, onChange: ChangeList): void {
  const last = chipsOf(state).at(-1);
  if (last !== undefined) onChange((now) => removeValue(now, last.name, last.value));
}
