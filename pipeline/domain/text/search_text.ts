// Parses what people search for: words, and "quoted phrases" of consecutive words. Takes the text as
// typed, returns its words as the index has them. Pure.
import { wordsOf } from './text_terms.ts';

export interface SearchText {
  /** Distinct words, those of the phrases included. */
  words: string[];
  /** Words of each phrase of two words or more, with a space between each and the next. */
  phrases: string[];
}

/** Detail of the error for a search without a word. */
export const NO_WORD = 'must contain a word to search for: a letter or a digit';

const QUOTED = /"([^"]*)"/g;

/** Returns null if the text has no word. */
export function parseSearch(text: string): SearchText | null {
  const words = [...new Set(wordsOf(text))];
  if (words.length === 0) return null;
  const phrases = [...text.matchAll(QUOTED)]
    .map(([, quoted = '']) => wordsOf(quoted))
    .filter((phrase) => phrase.length > 1)
    .map((phrase) => phrase.join(' '));
  return { words, phrases: [...new Set(phrases)] };
}

/** Returns what a snippet marks: each phrase, and each word that is in no phrase. */
export function markedTerms({ words, phrases }: SearchText): string[] {
  const quoted = new Set(phrases.flatMap((phrase) => phrase.split(' ')));
  return [...phrases, ...words.filter((word) => !quoted.has(word))];
}
