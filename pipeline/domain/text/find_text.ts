// Parses the words and "quoted phrases" that are looked for in the texts of one trace. Takes the
// text as typed, returns RE2 patterns for the store, and word sequences for marking the matches.
// Pure.
import { queryWords } from './text_terms.ts';

export interface FindText {
  /**
   * Patterns that must all match: one for each phrase, and one for each other word, each with its
   * first word.
   */
  all: { pattern: string; word: string }[];
  /** Pattern that matches where a snippet begins: any phrase, or any word if there is no phrase. */
  any: string;
  /** Words of each phrase, and each other word by itself, in lower case. */
  terms: string[][];
}

const QUOTED = /"([^"]*)"/g;
const WORD = /[\p{L}\p{N}]+/gu;
/**
 * A character that ends a word: no letter or digit, or an escaped line break of a prompt that is
 * stored as JSON.
 */
const APART = '(?:[^\\pL\\pN]|\\\\[nrt])';

/** Returns null if the text has no word. */
export function parseFind(text: string): FindText | null {
  const phrases = [...text.matchAll(QUOTED)]
    .map(([, quoted = '']) => wordsIn(quoted))
    .filter(({ length }) => length > 1);
  const quoted = new Set(phrases.flat().map((word) => word.toLowerCase()));
  const typed = new Map(wordsIn(text).map((word) => [word.toLowerCase(), word]));
  const singles = [...typed].flatMap(([lower, word]) => (quoted.has(lower) ? [] : [[word]]));
  const terms = [...phrases, ...singles];
  if (terms.length === 0) return null;
  const bodies = (phrases.length > 0 ? phrases : terms).map(bodyOf);
  return {
    all: terms.map((words) => ({ pattern: whole(bodyOf(words)), word: words[0] ?? '' })),
    any: whole(`(?:${bodies.join('|')})`),
    terms: terms.map((words) => words.map((word) => word.toLowerCase())),
  };
}

/** Returns the number of different words of a text. */
export const wordCount = (text: string): number => queryWords(text).length;

const wordsIn = (text: string): string[] => text.match(WORD) ?? [];

/** Returns the pattern of a text that has any of the words; it matches the characters beside the word too. */
export const findPattern = (words: readonly string[]): string => whole(`(?:${words.join('|')})`);

/** Words of letters and digits need no escapes. Anything else may stand between two words. */
const bodyOf = (words: readonly string[]): string => words.join(`${APART}+`);
const whole = (body: string): string => `(?i)(?:^|${APART})${body}(?:${APART}|$)`;
