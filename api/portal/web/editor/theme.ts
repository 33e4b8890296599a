// The look of an editor. It stands in a shadow root, where the style sheets of the page do not reach,
// so its colours are the tokens of the page, which custom properties carry inside.
import type { Extension } from '@codemirror/state';
import { EditorView } from '@codemirror/view';

/** The look of every editor. */
export const theme: Extension = EditorView.theme({
  '&': {
    maxHeight: 'var(--editor-max-height)',
    border: '1px solid var(--line-strong)',
    borderRadius: 'var(--radius)',
    backgroundColor: 'var(--surface)',
    color: 'var(--text)',
  },
  '&.cm-focused': { outline: '2px solid var(--focus)' },
  '&:has([aria-readonly="true"])': { borderColor: 'var(--line)', backgroundColor: 'var(--sunken)' },
  '&:has([aria-invalid="true"])': { borderColor: 'var(--error)' },
  '.cm-scroller': { overflow: 'auto', font: '400 12.5px/20px var(--font-mono)', fontVariantLigatures: 'none' },
  '.cm-content': { minHeight: 'calc(var(--editor-rows) * 20px + 8px)', padding: '4px 0', caretColor: 'var(--text)' },
  '.cm-line': { padding: '0 8px' },
  '.cm-gutters': { border: '0', backgroundColor: 'var(--sunken)', color: 'var(--text-3)' },
  '.cm-placeholder': { color: 'var(--text-3)' },
  '& .cm-content ::selection, & .cm-line::selection': {
    backgroundColor: 'var(--accent-soft)',
    color: 'var(--text)',
  },
  '.cm-variable': { borderRadius: '2px', backgroundColor: 'var(--accent-soft)', color: 'var(--accent)' },
  '.cm-unknown': {
    backgroundColor: 'var(--warn-soft)',
    color: 'var(--warn)',
    textDecoration: 'underline wavy var(--warn)',
  },
  '.cm-problem': { textDecoration: 'underline wavy var(--error)' },
  '.cm-property': { color: 'var(--accent)' },
  '.cm-value': { color: 'var(--series-3)' },
  '.cm-punctuation': { color: 'var(--text-3)' },
});
