// Compares two texts by lines, then the changed lines by words. Bounded in time and edits: texts that
// differ too much come back whole and unmarked, and the result says so. Nothing is cut. Pure but for
// the clock.
import { type Deadline, deadlineIn, editScript, type Stretch } from './edits.ts';
import { pairLines } from './line_pairs.ts';
import { DIFF_BOUNDS, DIFF_CHARS_MAX, type Diff, type DiffBounds, type DiffPart, type DiffRow } from './shape.ts';
import { splitRow } from './split_row.ts';

/** Two lines whose common words are less than this share of them are shown as replaced, not as edited. */
const COMMON_SHARE_MIN = 0.3;
/** A word, or a single character of a script without spaces, or white space, or any other character. */
const WORDS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]|[\p{L}\p{N}\p{M}_]+|[^\S\n]+|[^\p{L}\p{N}\p{M}_\s]/gu;

/** Counts what a comparison found and how much it may still spend. */
export interface Work {
  bounds: DiffBounds;
  deadline: Deadline;
  rows: DiffRow[];
  removed: number;
  added: number;
  unmarked: number;
  /** Numbers of the lines that come next. */
  next: { left: number; right: number };
}

export function newWork(bounds: DiffBounds = DIFF_BOUNDS): Work {
  return {
    bounds,
    deadline: deadlineIn(bounds.ms),
    rows: [],
    removed: 0,
    added: 0,
    unmarked: 0,
    next: { left: 1, right: 1 },
  };
}

/** Compares two texts. */
export function textDiff(left: string, right: string, bounds: DiffBounds = DIFF_BOUNDS): Diff {
  const work = newWork(bounds);
  const gave_up = !addLines(work, linesOf(left), linesOf(right));
  return { form: 'text', rows: work.rows, removed: work.removed, added: work.added, gave_up, unmarked: work.unmarked };
}

/** Returns the lines of a text; an empty text has none. */
export const linesOf = (text: string): string[] => (text === '' ? [] : text.split('\n'));

/** Adds the rows of two lists of lines. @returns false if the bounds were reached: the rows are unmarked then */
export function addLines(work: Work, left: readonly string[], right: readonly string[]): boolean {
  const chars = [left, right].flat().reduce((sum, line) => sum + line.length + 1, 0);
  const script = chars > DIFF_CHARS_MAX ? null : editScript(left, right, work.bounds.line_edits, work.deadline);
  if (script === null) {
    addUnmarked(work, left, right);
    return false;
  }
  for (const stretch of script) {
    if (stretch.equal) for (let i = stretch.left; i < stretch.left_end; i += 1) addSame(work, left[i] ?? '');
    else addChanged(work, left, right, stretch);
  }
  return true;
}

/** Adds a line that both sides have. */
export function addSame(work: Work, line: string): void {
  const parts = [{ text: line, changed: false }];
  add(work, { kind: 'same', left: { number: work.next.left, parts }, right: { number: work.next.right, parts } });
}

/** Adds a line that one side has, or a line of each side. */
export function addPair(work: Work, left: string | null, right: string | null): void {
  if (left === null && right === null) return;
  if (left !== null) work.removed += 1;
  if (right !== null) work.added += 1;
  const words = left === null || right === null ? null : compareWords(work, left, right);
  const whole = (text: string): DiffPart[] => [{ text, changed: true }];
  const numbered = (number: number, parts: DiffPart[]) => ({ number, parts });
  add(work, {
    kind: left === null ? 'added' : right === null ? 'removed' : 'changed',
    left: left === null ? null : numbered(work.next.left, words?.left ?? whole(left)),
    right: right === null ? null : numbered(work.next.right, words?.right ?? whole(right)),
  });
}

function add(work: Work, row: DiffRow): void {
  if (row.left !== null) work.next.left += 1;
  if (row.right !== null) work.next.right += 1;
  work.rows.push(...splitRow(row));
}

/** Adds lines that were not compared, side by side and unmarked. */
function addUnmarked(work: Work, left: readonly string[], right: readonly string[]): void {
  const plain = (number: number, text: string | undefined) =>
    text === undefined ? null : { number, parts: [{ text, changed: false }] };
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const row = { left: plain(work.next.left, left[i]), right: plain(work.next.right, right[i]) };
    add(work, { kind: row.left === null ? 'added' : row.right === null ? 'removed' : 'changed', ...row });
  }
}

function addChanged(work: Work, left: readonly string[], right: readonly string[], stretch: Stretch): void {
  const gone = left.slice(stretch.left, stretch.left_end);
  const come = right.slice(stretch.right, stretch.right_end);
  for (const [a, b] of pairLines(gone, come))
    addPair(work, a === null ? null : (gone[a] ?? ''), b === null ? null : (come[b] ?? ''));
}

interface Words {
  left: DiffPart[];
  right: DiffPart[];
}

/** Returns the parts of two lines; null if they have too little in common, or if the bounds were reached. */
function compareWords(work: Work, left: string, right: string): Words | null {
  const [a, b] = [left.match(WORDS) ?? [], right.match(WORDS) ?? []];
  const script = editScript(a, b, work.bounds.word_edits, work.deadline);
  if (script === null) {
    work.unmarked += 1;
    return null;
  }
  const words: Words = { left: [], right: [] };
  let common = 0;
  for (const { equal, ...at } of script) {
    const gone = a.slice(at.left, at.left_end).join('');
    const come = b.slice(at.right, at.right_end).join('');
    if (equal) common += gone.trim().length;
    if (gone !== '') words.left.push({ text: gone, changed: !equal });
    if (come !== '') words.right.push({ text: come, changed: !equal });
  }
  const most = Math.max(left.trim().length, right.trim().length);
  return most > 0 && common / most < COMMON_SHARE_MIN ? null : words;
}
