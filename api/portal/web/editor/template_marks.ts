// Colours the variables of a template, and underlines those that have no value. Only the lines on the
// screen are read.
import { type Extension, RangeSetBuilder } from '@codemirror/state';
import { Decoration, type DecorationSet, type EditorView, ViewPlugin } from '@codemirror/view';
import { variablePlaces } from './variables.ts';

/**
 * Returns the extension.
 * @param known names that have a value; null marks none as unknown
 */
export function templateMarks(known: ReadonlySet<string> | null): Extension {
  return ViewPlugin.define(
    (view) => ({
      marks: marksOf(view, known),
      update(update): void {
        if (update.docChanged || update.viewportChanged) this.marks = marksOf(update.view, known);
      },
    }),
    { decorations: ({ marks }) => marks },
  );
}

const KNOWN = Decoration.mark({ class: 'cm-variable' });
const unknown = (name: string): Decoration =>
  Decoration.mark({ class: 'cm-variable cm-unknown', attributes: { title: `No value is known for ${name}.` } });

function marksOf({ state, visibleRanges }: EditorView, known: ReadonlySet<string> | null): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  for (const range of visibleRanges)
    for (const { name, from, to } of variablePlaces(state.sliceDoc(range.from, range.to)))
      marks.add(range.from + from, range.from + to, known === null || known.has(name) ? KNOWN : unknown(name));
  return marks.finish();
}
