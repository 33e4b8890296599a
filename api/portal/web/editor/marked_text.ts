// The coloured pieces of a text in an editor. Takes a text and its language; returns the text in pieces,
// which are the whole text when they are joined. Linear in the text. Pure.
import { type JsonKind, jsonTokens } from './json_tokens.ts';
import { variablePlaces } from './variables.ts';

export type EditorLanguage = 'template' | 'json';
/** `unknown` is a variable without a value, `problem` the place of a syntax error. */
type Look = 'property' | 'value' | 'mark' | 'variable' | 'unknown' | 'problem';

export interface Piece {
  text: string;
  /** Null: the plain colour of a text. */
  look: Look | null;
}

interface Mark {
  from: number;
  to: number;
  look: Look;
}

/** A longer line has one colour: elements for each of its tokens would make typing slow. */
const COLOURED_CHARS_MAX = 10_000;
const JSON_LOOKS: Record<JsonKind, Look | null> = { property: 'property', value: 'value', mark: 'mark', string: null };

/** Returns the pieces of one line of JSON. */
export function jsonPieces(line: string): Piece[] {
  if (line.length > COLOURED_CHARS_MAX) return [{ text: line, look: null }];
  return piecesOf(
    line,
    [...jsonTokens(line)].flatMap(({ kind, from, to }) => {
      const look = JSON_LOOKS[kind];
      return look === null ? [] : [{ from, to, look }];
    }),
  );
}

/**
 * Returns the pieces of a template.
 * @param known names that have a value; null marks none as unknown
 */
export const templatePieces = (text: string, known: ReadonlySet<string> | null): Piece[] =>
  piecesOf(
    text,
    variablePlaces(text).map(({ name, from, to }) => ({
      from,
      to,
      look: known === null || known.has(name) ? 'variable' : 'unknown',
    })),
  );

function piecesOf(text: string, marks: readonly Mark[]): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const { from, to, look } of marks) {
    if (from > end) pieces.push({ text: text.slice(end, from), look: null });
    pieces.push({ text: text.slice(from, to), look });
    end = to;
  }
  if (end < text.length || pieces.length === 0) pieces.push({ text: text.slice(end), look: null });
  return pieces;
}

/** Returns pieces in which the characters between two offsets look like a syntax error. */
export function withProblem(pieces: readonly Piece[], from: number, to: number): Piece[] {
  let begin = 0;
  return pieces.flatMap(({ text, look }) => {
    const [first, last] = [Math.max(0, from - begin), Math.min(text.length, to - begin)];
    begin += text.length;
    if (first >= last) return [{ text, look }];
    return [
      { text: text.slice(0, first), look },
      { text: text.slice(first, last), look: 'problem' as const },
      { text: text.slice(last), look },
    ].filter((piece) => piece.text !== '');
  });
}

/** Returns the lines of a text in groups of `size` lines, so that a change renders one group again. */
export function lineGroups(text: string, size: number): string[][] {
  const lines = text.split('\n');
  return Array.from({ length: Math.ceil(lines.length / size) }, (_, at) => lines.slice(at * size, (at + 1) * size));
}
