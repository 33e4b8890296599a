// The first syntax error of a JSON text, with its place. JSON.parse decides; the tokens
// of the text say where. A blank text has no error, as it stands for no value.
import { type EditorState, type Extension, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, ViewPlugin } from '@codemirror/view';
import { jsonErrorPlace } from './json_tokens.ts';

/** Pause after the last key before a text is checked. */
const PAUSE_MS = 250;
const WORD_CHARS_MAX = 20;

interface Problem {
  from: number;
  to: number;
  text: string;
}

const setProblem = StateEffect.define<Problem | null>();
const MARK = Decoration.mark({ class: 'cm-problem' });

const marked = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, transaction) {
    let next = marks.map(transaction.changes);
    for (const effect of transaction.effects)
      if (effect.is(setProblem)) next = effect.value === null ? Decoration.none : markOf(effect.value);
    return next;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const markOf = ({ from, to }: Problem): DecorationSet =>
  to > from ? Decoration.set(MARK.range(from, to)) : Decoration.none;

/**
 * Returns the extension that checks a text as JSON, marks its first error and reports it.
 * @param report called with the words of the error; null when there is none
 */
export function jsonCheck(report: (problem: string | null) => void): Extension {
  const plugin = ViewPlugin.define((view) => {
    let timer = setTimeout(check, 0);
    function check(): void {
      const problem = jsonProblem(view.state);
      view.dispatch({ effects: setProblem.of(problem) });
      report(problem?.text ?? null);
    }
    return {
      update({ docChanged }): void {
        if (!docChanged) return;
        clearTimeout(timer);
        timer = setTimeout(check, PAUSE_MS);
      },
      destroy(): void {
        clearTimeout(timer);
        report(null);
      },
    };
  });
  return [marked, plugin];
}

/** Returns the first syntax error of the text as JSON; null without one. */
export function jsonProblem(state: EditorState): Problem | null {
  const text = state.sliceDoc();
  if (text.trim() === '') return null;
  try {
    JSON.parse(text);
    return null;
  } catch {
    const { from, to } = jsonErrorPlace(text);
    const line = state.doc.lineAt(from);
    const where = `Line ${line.number}, column ${from - line.from + 1}`;
    // At least one character is underlined.
    const end = Math.min(text.length, Math.max(to, from + 1));
    return { from: Math.min(from, end - 1), to: end, text: `${where}: ${wordsOf(text, from, to)}` };
  }
}

function wordsOf(text: string, from: number, to: number): string {
  const rest = text.slice(from).trimStart();
  if (rest === '') return 'the JSON ends too early.';
  const word = text.slice(from, Math.min(to, from + WORD_CHARS_MAX)).trim();
  return word === ''
    ? `something is missing before ${JSON.stringify(rest.slice(0, 1))}.`
    : `${JSON.stringify(word)} is not accepted here.`;
}
