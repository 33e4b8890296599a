// Parses the `search` parameter of the trace list: words that must all occur in the texts of one
// span, and "quoted phrases". Takes the text as typed, returns words in the form of the index and a
// pattern for each phrase. Pure.
import { queryWords } from './text_terms.ts';

export interface SearchText {
  /** Distinct words in lower case, those of the phrases included. */
  words: string[];
  /** RE2 patterns, one for each phrase of two words or more. */
  phrases: string[];
}

const QUOTED = /"([^"]*)"/g;
const WORD = /[\p{L}\p{N}]+/gu;
const BETWEEN = '[^\\pL\\pN]+';

/** Returns null if the text has no word. */
export function parseSearch(text: string): SearchText | null {
  const words = queryWords(text).map(({ word }) => word);
  if (words.length === 0) return null;
  const phrases = [...text.matchAll(QUOTED)]
    .map(([, quoted = '']) => quoted.match(WORD) ?? [])
    .filter((phrase) => phrase.length > 1);
  return { words, phrases: [...new Set(phrases.map(phrasePattern))] };
}

/** Words of letters and digits need no escapes. Anything else may stand between two words. */
function phrasePattern(words: readonly string[]): string {
  return `(?i)(?:^|[^\\pL\\pN])${words.join(BETWEEN)}(?:[^\\pL\\pN]|$)`;
}
