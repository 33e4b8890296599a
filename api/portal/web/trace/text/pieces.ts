// Cuts a long text into pieces that are mounted as they come into sight. A piece ends at the end of
// a line where one is near, and the pieces together are exactly the text. Pure.

/** Texts up to this length are shown in one piece. */
export const WHOLE_CHARS_MAX = 20_000;
const PIECE_CHARS = 2000;

/** Returns the positions at which the pieces start. */
export function pieceStarts(text: string): number[] {
  if (text.length <= WHOLE_CHARS_MAX) return [0];
  const starts: number[] = [];
  for (let from = 0; from < text.length;) {
    starts.push(from);
    const limit = from + PIECE_CHARS;
    // The search stays within the piece: in a text without line breaks it would go back to the start each time.
    const line = limit < text.length ? text.slice(from, limit + 1).lastIndexOf('\n') : -1;
    if (line > 0) from += line + 1;
    else from = isSurrogatePair(text, limit) ? limit + 1 : limit;
  }
  return starts;
}

/** A cut between the two halves of a character would show neither. */
const isSurrogatePair = (text: string, at: number): boolean =>
  (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;

/** Returns a piece; the line break at its end is left out where a next piece follows, since that begins a new line. */
export function pieceAt(text: string, starts: readonly number[], index: number): string {
  const next = starts[index + 1];
  const end = next === undefined ? text.length : text.charAt(next - 1) === '\n' ? next - 1 : next;
  return text.slice(starts[index] ?? 0, end);
}

export interface Found {
  from: number;
  to: number;
}
const FOUND_MAX = 10_000;

/** Returns where a text contains another, whatever the case; at most 10,000 places. */
export function findInText(text: string, wanted: string): Found[] {
  const found: Found[] = [];
  const needle = wanted.toLowerCase();
  if (needle === '') return found;
  const lower = text.toLowerCase();
  // Lower case changes the length of a few characters; positions would not fit then.
  const searched = lower.length === text.length ? lower : text;
  for (
    let at = searched.indexOf(needle);
    at >= 0 && found.length < FOUND_MAX;
    at = searched.indexOf(needle, at + needle.length)
  )
    found.push({ from: at, to: at + needle.length });
  return found;
}
