// A field for a template or JSON: CodeMirror with a label, an explanation and errors. Its code is
// loaded when it is shown. Tab leaves the field, Ctrl+Enter saves.
import { lazy, type ReactElement, Suspense, useState } from 'react';
import styles from '../ui/field.module.css';
import { Skeleton } from '../ui/skeleton.tsx';
import type { EditorLanguage } from './code_mirror.tsx';

const CodeMirror = lazy(() => import('./code_mirror.tsx'));

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

/** An editor with its label. */
export function Editor(props: EditorProps): ReactElement {
  const { label, bare = false, hint, example = '', error = null, rows = 4, rowsMax = 24, onChange, onSave } = props;
  const [problem, setProblem] = useState<string | null>(null);
  const errors = [error, problem].filter((one) => one !== null);
  return (
    <div className={styles.field}>
      {/* Screen readers take the name from the field itself, as names do not cross the border of a shadow root. */}
      {!bare && (
        <div aria-hidden="true" className={styles.label}>
          {label}
        </div>
      )}
      <Suspense fallback={<Skeleton rows={rows} />}>
        <CodeMirror
          value={props.value}
          label={label}
          language={props.language}
          variables={props.variables ?? null}
          notes={[hint ?? '', ...errors].join(' ')}
          invalid={errors.length > 0}
          example={example}
          rows={rows}
          rowsMax={rowsMax}
          focused={props.focused ?? false}
          onChange={onChange ?? null}
          onSave={() => onSave?.()}
          onProblem={setProblem}
        />
      </Suspense>
      {hint !== undefined && <div className={styles.hint}>{hint}</div>}
      <div aria-live="polite">
        {errors.map((text) => (
          <p key={text} className={styles.error}>
            {text}
          </p>
        ))}
      </div>
    </div>
  );
}
