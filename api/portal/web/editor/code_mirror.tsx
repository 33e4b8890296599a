// CodeMirror in a shadow root: the page's content security policy refuses the style tags that it would
// write into a document, while in a shadow root it adopts style sheets. Loaded when an editor is shown.
import { history, historyKeymap } from '@codemirror/commands';
import { Annotation, Compartment, EditorState, type Extension } from '@codemirror/state';
import { EditorView, keymap, type KeyBinding, lineNumbers, placeholder } from '@codemirror/view';
import { type CSSProperties, type ReactElement, useEffect, useEffectEvent, useRef } from 'react';
import { flushSync } from 'react-dom';
import { editKeys } from './edit_keys.ts';
import { jsonMarks } from './json_marks.ts';
import { jsonCheck } from './json_problem.ts';
import { replaceSelection } from './replace_selection.ts';
import { templateMarks } from './template_marks.ts';
import { theme } from './theme.ts';

export type EditorLanguage = 'text' | 'template' | 'json';

interface CodeMirrorProps {
  value: string;
  label: string;
  language: EditorLanguage;
  /** Names that have a value; null marks none as unknown. */
  variables: readonly string[] | null;
  /** Explanation and errors, which are read out with the field. */
  notes: string;
  invalid: boolean;
  /** Shown in the empty field. */
  example: string;
  rows: number;
  rowsMax: number;
  focused: boolean;
  /** Null: the text can be read, selected and copied, and does not change. */
  onChange: ((value: string) => void) | null;
  onSave: () => void;
  onProblem: (problem: string | null) => void;
}

const ROW_PX = 20;
/** Padding and borders of an editor. */
const EDGES_PX = 10;
const NOTES_ID = 'notes';
/** Marks a text that the owner gave, which is not reported to the owner. */
const fromOwner = Annotation.define<boolean>();

/** The editor alone; editor.tsx adds its label, explanation and errors. */
export default function CodeMirror(props: CodeMirrorProps): ReactElement {
  const { value, label, language, variables, notes, invalid, example, rows, rowsMax, onChange } = props;
  const host = useRef<HTMLDivElement>(null);
  const editor = useRef<Mounted | null>(null);
  const changed = useEffectEvent((text: string) => {
    if (editor.current !== null) {
      editor.current.text = text;
      editor.current.reported.push(text);
    }
    onChange?.(text);
  });
  const saved = useEffectEvent(props.onSave);
  const report = useEffectEvent(props.onProblem);
  const mount = useEffectEvent((element: HTMLElement) => {
    editor.current = mounted(element, value, changed, saved);
    if (props.focused) editor.current.view.focus();
  });
  useEffect(() => {
    if (host.current !== null) mount(host.current);
    return () => {
      editor.current?.view.destroy();
      editor.current?.notes.remove();
      editor.current = null;
    };
  }, []);
  const known = variables === null ? null : JSON.stringify(variables);
  useEffect(() => {
    const names = known === null ? null : new Set(JSON.parse(known) as string[]);
    const extension = languageOf(language, names, (problem) => {
      report(problem);
    });
    editor.current?.view.dispatch({ effects: editor.current.language.reconfigure(extension) });
  }, [language, known]);
  const readOnly = onChange === null;
  useEffect(() => {
    const attributes = { 'aria-label': label, 'aria-describedby': NOTES_ID };
    editor.current?.view.dispatch({
      effects: editor.current.settings.reconfigure([
        EditorState.readOnly.of(readOnly),
        placeholder(example),
        EditorView.contentAttributes.of(invalid ? { ...attributes, 'aria-invalid': 'true' } : attributes),
      ]),
    });
  }, [label, readOnly, example, invalid]);
  useEffect(() => {
    if (editor.current !== null) editor.current.notes.textContent = notes;
  }, [notes]);
  useEffect(() => {
    if (editor.current !== null) show(editor.current, value);
  }, [value]);
  const sizes = { '--editor-rows': rows, '--editor-max-height': `${rowsMax * ROW_PX + EDGES_PX}px` } as CSSProperties;
  // Shortcuts of the page see the host as the target of keys; the attribute says that it is a field.
  return <div ref={host} data-editor="" style={sizes} />;
}

interface Mounted {
  view: EditorView;
  language: Compartment;
  settings: Compartment;
  notes: HTMLElement;
  /** The text in the view. */
  text: string;
  /** Texts that the owner was given and has not rendered yet, oldest first. */
  reported: string[];
}

/** Shows the owner's value, unless the owner renders a text that the person has since typed past. */
function show(editor: Mounted, value: string): void {
  const at = editor.reported.indexOf(value);
  if (editor.text !== value && at >= 0) {
    editor.reported.splice(0, at + 1);
    return;
  }
  if (editor.text !== value)
    editor.view.dispatch({
      changes: { from: 0, to: editor.view.state.doc.length, insert: value },
      annotations: fromOwner.of(true),
    });
  editor.text = value;
  editor.reported = [];
}

function mounted(element: HTMLElement, text: string, changed: (text: string) => void, save: () => void): Mounted {
  const root = element.shadowRoot ?? element.attachShadow({ mode: 'open' });
  const [language, settings] = [new Compartment(), new Compartment()];
  const notes = root.appendChild(document.createElement('div'));
  notes.id = NOTES_ID;
  notes.hidden = true;
  const extensions = [
    history(),
    keymap.of([...ownKeys(save), ...historyKeymap, ...editKeys]),
    replaceSelection,
    theme,
    EditorView.lineWrapping,
    EditorView.updateListener.of(({ docChanged, state, transactions }) => {
      if (!docChanged || transactions.some((one) => one.annotation(fromOwner) === true)) return;
      const now = state.sliceDoc();
      // React does not see the events of a shadow root, and would render the text after the next key: Ctrl+Enter
      // would save the text before it. The editor takes no change while it updates, hence the microtask.
      queueMicrotask(() => {
        flushSync(() => {
          changed(now);
        });
      });
    }),
    language.of([]),
    settings.of([]),
  ];
  const view = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root });
  return { view, language, settings, notes, text, reported: [] };
}

function languageOf(
  language: EditorLanguage,
  names: ReadonlySet<string> | null,
  report: (problem: string | null) => void,
): Extension {
  if (language === 'template') return templateMarks(names);
  return language === 'json' ? [jsonMarks, jsonCheck(report), lineNumbers()] : [];
}

/** Tab is bound to nothing, so it leaves the editor. Escape leaves it as it leaves every field. */
const ownKeys = (save: () => void): KeyBinding[] => [
  {
    key: 'Mod-Enter',
    run: () => {
      save();
      return true;
    },
  },
  {
    key: 'Escape',
    stopPropagation: true,
    run: ({ contentDOM }: EditorView) => {
      contentDOM.blur();
      return true;
    },
  },
];
