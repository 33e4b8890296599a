// Shapes of a comparison of two texts: rows of lines, with the parts of a line that changed. The
// worker returns them and the view shows them. Pure.

/** How two texts are compared: by lines and words, or as JSON by keys. */
export type DiffForm = 'text' | 'json';

/** A part of a line; the parts of a line together are the line. */
export interface DiffPart {
  text: string;
  changed: boolean;
}

export interface DiffLine {
  /** Number of the line from 1; 0 where a long line goes on. */
  number: number;
  parts: readonly DiffPart[];
}

/** `same` and `changed` rows have both sides, `removed` only the left one, `added` only the right one. */
export interface DiffRow {
  kind: 'same' | 'changed' | 'removed' | 'added';
  left: DiffLine | null;
  right: DiffLine | null;
}

export interface Diff {
  form: DiffForm;
  rows: readonly DiffRow[];
  /** Lines of the left text that are not in the right one, and the other way round. */
  removed: number;
  added: number;
  /** True: the texts differ too much to be compared within the bounds. The rows show both, unmarked. */
  gave_up: boolean;
  /** Changed lines whose words were not compared because the bounds were reached. */
  unmarked: number;
}

/** Bounds of one comparison. Past them the comparison gives up and says so. */
export interface DiffBounds {
  /** Milliseconds for the whole comparison. */
  ms: number;
  /** Insertions and deletions of lines. */
  line_edits: number;
  /** Insertions and deletions of words of one stretch of changed lines. */
  word_edits: number;
}

export const DIFF_BOUNDS: DiffBounds = { ms: 4000, line_edits: 20_000, word_edits: 4000 };
/** Longer texts, together, are not compared; the view says so and shows both. */
export const DIFF_CHARS_MAX = 8_000_000;
