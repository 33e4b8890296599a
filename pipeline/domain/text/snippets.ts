// Cuts the part of a text around its first match and marks the matches in it. In: a plain text, and
// words and phrases as the index has them. Out: one line of bounded length with the places of the
// matches. Pure; linear in the length of the text.
import { clearWords, splitWords, wordHash, type WordList, wordList } from './words.ts';

export interface Snippet {
  snippet: string;
  /** Start and end of each match in the snippet, in UTF-16 code units; the end is exclusive. */
  marks: [number, number][];
  /** Words and phrases that the snippet marks. */
  found: string[];
}

interface Match {
  start: number;
  end: number;
  term: string;
}

/** Characters of a snippet before and after the beginning of its first match. */
const BEFORE_CHARS = 80;
const AFTER_CHARS = 200;
/** Maximum characters of a snippet, however long its words are. */
const SNIPPET_CHARS_MAX = 2000;
const SPACES = /\s+/gu;
const ELLIPSIS = '…';

/** Words of the current text: snippetOf is synchronous, so there is one at a time. */
const list = wordList(true);

/**
 * Returns the snippet of a text; its beginning without marks where nothing matches.
 * @param terms words, and phrases with a space between each word and the next
 * @param firsts terms, by rank, one of which the snippet begins with if it occurs; else any
 */
export function snippetOf(text: string, terms: readonly string[], firsts: readonly string[] = []): Snippet {
  clearWords(list);
  splitWords(text, list);
  const matches = matchesIn(list, terms);
  const first = firstOf(matches, firsts);
  const at = first?.start ?? skipSpaces(text);
  const from = startOf(list, at - BEFORE_CHARS, at);
  const to = endOf(list, { wanted: at + AFTER_CHARS, least: first?.end ?? at, from, length: text.length });
  const inside = matches.filter(({ start, end }) => start >= from && end <= to);
  const { line, marks } = oneLine(text.slice(from, to), merged(inside, from));
  const head = from > 0 && text.slice(0, from).trim() !== '' ? ELLIPSIS : '';
  const tail = text.slice(to).trim() === '' ? '' : ELLIPSIS;
  return {
    snippet: `${head}${line}${tail}`,
    marks: marks.map(([start, end]) => [start + head.length, end + head.length]),
    found: [...new Set(inside.map(({ term }) => term))],
  };
}

/** Returns the matches in order. Words that are written in pairs of characters overlap. */
function matchesIn({ count, hashes, places, units }: WordList, terms: readonly string[]): Match[] {
  if (places === null) return [];
  const { starts, ends, unitEnds } = places;
  const byFirst = Map.groupBy(
    terms.map((term) => ({ term, words: term.split(' ').length })),
    ({ term }) => wordHash(term.split(' ', 1)[0] ?? '') | 0,
  );
  const isAt = (term: string, unitEnd: number): boolean => {
    const from = unitEnd - term.length;
    for (let n = 0; n < term.length; n++) if (units[from + n] !== term.charCodeAt(n)) return false;
    return true;
  };
  const matches: Match[] = [];
  for (let at = 0; at < count; at++) {
    for (const { term, words } of byFirst.get(hashes[at] ?? 0) ?? []) {
      const last = at + words - 1;
      const from = at === 0 ? 0 : (unitEnds[at - 1] ?? 0) + 1;
      const unitEnd = unitEnds[last] ?? 0;
      if (last >= count || unitEnd - from !== term.length || !isAt(term, unitEnd)) continue;
      matches.push({ start: starts[at] ?? 0, end: ends[last] ?? 0, term });
    }
  }
  return matches;
}

function firstOf(matches: readonly Match[], firsts: readonly string[]): Match | undefined {
  for (const wanted of firsts) {
    const match = matches.find(({ term }) => term === wanted);
    if (match !== undefined) return match;
  }
  return matches[0];
}

/** Returns the places of matches relative to the start of the snippet; those that overlap as one. */
function merged(matches: readonly Match[], from: number): [number, number][] {
  const places: [number, number][] = [];
  for (const { start, end } of matches) {
    const last = places.at(-1);
    if (last !== undefined && start - from < last[1]) last[1] = Math.max(last[1], end - from);
    else places.push([start - from, end - from]);
  }
  return places;
}

/** Returns a text with each run of white space as one space, and the places of its marks in that. */
function oneLine(text: string, places: readonly [number, number][]): { line: string; marks: [number, number][] } {
  const marks: [number, number][] = [];
  let line = '';
  let at = 0;
  const take = (end: number): void => {
    line += text.slice(at, end).replace(SPACES, ' ');
    at = end;
  };
  for (const [start, end] of places) {
    take(start);
    const from = line.length;
    take(end);
    marks.push([from, line.length]);
  }
  take(text.length);
  return { line: line.trimEnd(), marks };
}

const skipSpaces = (text: string): number => text.length - text.trimStart().length;

/** Returns the start of the first word from a position on, so that a snippet begins with a whole word. */
function startOf({ count, places }: WordList, wanted: number, latest: number): number {
  if (wanted <= 0 || places === null) return Math.max(0, Math.min(latest, wanted <= 0 ? 0 : latest));
  const word = places.starts.subarray(0, count).findIndex((start) => start >= wanted);
  return word === -1 ? latest : Math.min(latest, places.starts[word] ?? latest);
}

/** Returns the end of the last word before a position, at least the end of the first match. */
function endOf(
  { count, places }: WordList,
  { wanted, least, from, length }: { wanted: number; least: number; from: number; length: number },
): number {
  if (wanted >= length) return Math.min(length, from + SNIPPET_CHARS_MAX);
  const word = places === null ? -1 : places.ends.subarray(0, count).findLastIndex((end) => end <= wanted);
  const end = Math.max(least, word === -1 ? 0 : (places?.ends[word] ?? 0));
  return Math.min(end > from ? end : wanted, from + SNIPPET_CHARS_MAX);
}
