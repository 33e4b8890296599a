// Cuts the part of a text around its first match and marks the matches in it. In: a part of a text,
// and word sequences in lower case. Out: one line of bounded length with the places of the matches.
// Pure; linear in the length of the text.

export interface Snippet {
  snippet: string;
  /** Start and end of each match in the snippet, in UTF-16 code units; the end is exclusive. */
  marks: [number, number][];
}

/** Characters of a snippet before and after the beginning of its first match. */
const BEFORE_CHARS = 80;
const AFTER_CHARS = 200;
const WORD = /[\p{L}\p{N}]+/gu;
const SPACES = /\s+/gu;
/** Replaces the halves of characters at which the store cut the text. */
const CUT = /^\ufffd|\ufffd$/g;
const ELLIPSIS = '…';
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/g;

function unescaped(escape: string): string {
  const letter = escape[1] ?? '';
  if (letter === 'u') return String.fromCharCode(parseInt(escape.slice(2), 16));
  return 'bfnrt'.includes(letter) ? ' ' : letter;
}

interface Word {
  text: string;
  start: number;
  end: number;
}

/**
 * Returns the snippet of a text; its beginning without marks where nothing matches.
 * @param isJson true for a part of a JSON text, whose escapes are replaced by their characters
 */
export function snippetOf(text: string, terms: readonly (readonly string[])[], isJson = false): Snippet {
  const whole = text.replace(CUT, '');
  const line = (isJson ? whole.replace(ESCAPE, unescaped) : whole).replace(SPACES, ' ').trim();
  const words = wordsOf(line);
  const matches = matchesIn(words, terms);
  const first = matches[0]?.[0] ?? 0;
  const from = startOf(words, first - BEFORE_CHARS, first);
  const to = endOf(words, first + AFTER_CHARS, matches[0]?.[1] ?? 0, line.length);
  const head = from > 0 ? ELLIPSIS : '';
  const snippet = `${head}${line.slice(from, to)}${to < line.length ? ELLIPSIS : ''}`;
  const marks = matches
    .filter(([start, end]) => start >= from && end <= to)
    .map(([start, end]): [number, number] => [start - from + head.length, end - from + head.length]);
  return { snippet, marks };
}

function wordsOf(line: string): Word[] {
  return [...line.matchAll(WORD)].map((found) => ({
    text: found[0].toLowerCase(),
    start: found.index,
    end: found.index + found[0].length,
  }));
}

/** Returns the places of the matches, in order and without overlaps. */
function matchesIn(words: readonly Word[], terms: readonly (readonly string[])[]): [number, number][] {
  const byFirst = Map.groupBy(terms, ([first = '']) => first);
  const matches: [number, number][] = [];
  for (let at = 0; at < words.length;) {
    const term = byFirst
      .get(words[at]?.text ?? '')
      ?.find((wanted) => wanted.every((word, n) => words[at + n]?.text === word));
    if (term === undefined) {
      at++;
      continue;
    }
    matches.push([words[at]?.start ?? 0, words[at + term.length - 1]?.end ?? 0]);
    at += term.length;
  }
  return matches;
}

/** Returns the start of the first word from a position on, so that a snippet begins with a whole word. */
function startOf(words: readonly Word[], wanted: number, latest: number): number {
  if (wanted <= 0) return 0;
  return words.find(({ start }) => start >= wanted)?.start ?? latest;
}

/** Returns the end of the last word before a position, at least the end of the first match. */
function endOf(words: readonly Word[], wanted: number, least: number, length: number): number {
  if (wanted >= length) return length;
  return Math.max(least, words.findLast(({ end }) => end <= wanted)?.end ?? 0) || Math.min(wanted, length);
}
