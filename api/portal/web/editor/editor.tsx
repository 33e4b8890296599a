// A field for a template or JSON: a text area of the browser, with its own keys, undo and input methods, above
// the same text in colours. Tab leaves the field, as does Escape; Ctrl+Enter saves; Enter keeps the indentation.
import { type CSSProperties, type KeyboardEvent, type ReactElement, useId, useMemo } from 'react';
import { cx } from '../ui/cx.ts';
import fields from '../ui/field.module.css';
import styles from './editor.module.css';
import type { EditorLanguage } from './marked_text.ts';
import { ShownText } from './shown_text.tsx';
import { useJsonProblem } from './use_json_problem.ts';
import { variableNames } from './variables.ts';

interface EditorProps {
  /** Name of the field. */
  label: string;
  /** True: the label is read out but not shown. */
  bare?: boolean;
  value: string;
  /** `template` colours {{variables}}; `json` shows syntax errors at their place. */
  language: EditorLanguage;
  /** For a template: names that have a value; others are marked. Absent: none is marked. */
  variables?: readonly string[];
  hint?: string;
  /** Shown in the empty field. */
  example?: string;
  error?: string | null;
  /** Lines that are shown at least, and at most before the field scrolls. */
  rows?: number;
  rowsMax?: number;
  /** True: the field takes the focus when it appears. */
  focused?: boolean;
  /** Absent: the text can be read, selected and copied, and does not change. */
  onChange?: (value: string) => void;
  /** Called by Ctrl+Enter. The event also reaches a dialog around the field, whose onSubmit it calls. */
  onSave?: () => void;
}

const ROW_PX = 20;
/** Padding above and below the text. */
const PADDING_PX = 8;
/** Borders of an editor. */
const BORDERS_PX = 2;

/** The attribute gives the field the focus when its dialog opens, and the call outside of a dialog. */
const opensHere = (field: HTMLTextAreaElement | null): void => {
  field?.setAttribute('autofocus', '');
  field?.focus();
};

/** An editor with its label. */
export function Editor(props: EditorProps): ReactElement {
  const { label, bare = false, value, language, variables, error = null, rows = 4, rowsMax = 24 } = props;
  const { focused = false, example, onChange, onSave } = props;
  const id = useId();
  const { problem, isCurrent } = useJsonProblem(language === 'json' ? value : null);
  const known = useMemo(() => (variables === undefined ? null : new Set(variables)), [variables]);
  const errors = [error, problem?.text ?? null].filter((one) => one !== null);
  const notes = notesOf(props);
  const sizes: CSSProperties = { minHeight: rows * ROW_PX + PADDING_PX };
  return (
    <div className={fields.field}>
      {!bare && (
        <label htmlFor={id} className={fields.label}>
          {label}
        </label>
      )}
      <div className={styles.frame} style={{ maxHeight: rowsMax * ROW_PX + PADDING_PX + BORDERS_PX }}>
        <div className={cx(styles.body, language === 'json' && styles.numbered)} style={sizes}>
          <ShownText text={value} language={language} known={known} problem={isCurrent ? problem : null} />
          <textarea
            id={id}
            className={styles.field}
            aria-label={bare ? label : undefined}
            aria-describedby={`${id}-notes ${id}-errors`}
            aria-invalid={errors.length > 0 ? true : undefined}
            ref={focused ? opensHere : null}
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            placeholder={example}
            readOnly={onChange === undefined}
            value={value}
            onChange={(event) => onChange?.(event.target.value)}
            onKeyDown={(event) => {
              onKey(event, onSave);
            }}
          />
        </div>
      </div>
      <div id={`${id}-notes`} className={notes === '' ? undefined : fields.hint}>
        {notes}
      </div>
      <div id={`${id}-errors`} aria-live="polite">
        {errors.map((text) => (
          <p key={text} className={fields.error}>
            {text}
          </p>
        ))}
      </div>
    </div>
  );
}

/** Returns the explanation, and the names of variables without a value unless the error says something already. */
function notesOf({ hint = '', error = null, language, value, variables }: EditorProps): string {
  if (language !== 'template' || variables === undefined || error !== null) return hint;
  const missing = variableNames(value).filter((name) => !variables.includes(name));
  return [hint, missing.length === 0 ? '' : `No value is known for ${missing.join(', ')}.`]
    .filter((words) => words !== '')
    .join(' ');
}

function onKey(event: KeyboardEvent<HTMLTextAreaElement>, onSave: (() => void) | undefined): void {
  const { key, ctrlKey, metaKey, shiftKey, altKey, nativeEvent, currentTarget } = event;
  if (nativeEvent.isComposing) return;
  if (key === 'Escape') {
    event.preventDefault();
    event.stopPropagation();
    currentTarget.blur();
  } else if (key === 'Enter' && (ctrlKey || metaKey)) {
    event.preventDefault();
    onSave?.();
  } else if (key === 'Enter' && !shiftKey && !altKey && !currentTarget.readOnly) {
    const { value, selectionStart } = currentTarget;
    const line = value.slice(value.lastIndexOf('\n', selectionStart - 1) + 1, selectionStart);
    const indentation = line.slice(0, line.length - line.trimStart().length);
    if (indentation === '') return;
    event.preventDefault();
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- the only way that keeps the undo of the browser
    document.execCommand('insertText', false, `\n${indentation}`);
  }
}
