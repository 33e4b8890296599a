// Colours the names, values and marks of a JSON text. Only the lines on the screen are read.
import { type Extension, RangeSetBuilder } from '@codemirror/state';
import { Decoration, type EditorView, type DecorationSet, ViewPlugin } from '@codemirror/view';
import { type JsonKind, jsonTokens } from './json_tokens.ts';

const MARKS: Partial<Record<JsonKind, Decoration>> = {
  property: Decoration.mark({ class: 'cm-property' }),
  value: Decoration.mark({ class: 'cm-value' }),
  mark: Decoration.mark({ class: 'cm-punctuation' }),
};

/** The extension. */
export const jsonMarks: Extension = ViewPlugin.define(
  (view) => ({
    marks: marksOf(view),
    update(update): void {
      if (update.docChanged || update.viewportChanged) this.marks = marksOf(update.view);
    },
  }),
  { decorations: ({ marks }) => marks },
);

function marksOf({ state, visibleRanges }: EditorView): DecorationSet {
  const marks = new RangeSetBuilder<Decoration>();
  for (const range of visibleRanges)
    for (const { kind, from, to } of jsonTokens(state.sliceDoc(range.from, range.to))) {
      const mark = MARKS[kind];
      if (mark !== undefined) marks.add(range.from + from, range.from + to, mark);
    }
  return marks.finish();
}
