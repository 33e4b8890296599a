// Replaces a selection by a transaction of the editor when text is typed over it. Chrome's own
// replacement of a selection that begins in coloured text keeps the colour in a style attribute,
// which the page's content security policy blocks and reports.
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

/** The extension. A read-only editor ignores text that is typed over a selection. */
export const replaceSelection: Extension = EditorView.domEventHandlers({
  beforeinput: ({ inputType, data }, view) => {
    if (inputType !== 'insertText' || data === null || view.composing || view.state.selection.main.empty) return false;
    replace(view, data);
    return true;
  },
  compositionstart: (_, view) => {
    // Input method events cannot be cancelled, so delete the selection before the first one.
    if (!view.state.selection.main.empty) replace(view, '');
    return false;
  },
});

function replace(view: EditorView, text: string): void {
  const { state } = view;
  if (state.readOnly) return;
  view.dispatch(state.replaceSelection(text), { scrollIntoView: true, userEvent: 'input.type' });
}
