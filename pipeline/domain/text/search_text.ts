// Parses what people search for: words, and "quoted phrases" of consecutive words. Takes the text as
// typed, returns its words as the index has them. Pure.
import { type QueryWord, queryWords, wordsOf } from './text_terms.ts';

export interface SearchText {
  /** Distinct words, those of the phrases included. */
  words: QueryWord[];
  /** Words of each phrase of two words or more, with a space between each and the next. */
  phrases: string[];
}

/** Detail of the error for a search without a word. */
export const NO_WORD = 'must contain a word to search for: a letter or a digit';

const QUOTED = /"([^"]*)"/g;

/** Returns null if the text has no word. */
export function parseSearch(text: string): SearchText | null {
  const words = queryWords(text);
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
  return [...phrases, ...words.map(({ word }) => word).filter((word) => !quoted.has(word))];
}

/** Returns the phrases as conditions of sql/queries/traces/has_phrases.sql; undefined where there are none. */
export function phraseConditions({ phrases }: { phrases: readonly string[] }): PhraseCondition[] | undefined {
  if (phrases.length === 0) return undefined;
  return phrases.map((phrase) => ({ words: phrase.split(' '), phrase: ` ${phrase} ` }));
}

interface PhraseCondition {
  words: string[];
  /** With a space at both ends, so that no word matches the end of another. */
  phrase: string;
}
