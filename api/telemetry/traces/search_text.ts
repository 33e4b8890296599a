// What the `search` of a trace list asks for: words that must all occur in one span's texts, and "quoted phrases".
// In: the text as typed. Out: words as the index knows them, and a pattern for each phrase. Pure.
import { queryWords } from '../../../pipeline/domain/text/text_terms.ts';

export interface SearchText {
  /** Distinct, lower-cased; those of the phrases too. */
  words: string[];
  /** RE2 patterns, one for each phrase of two words or more. */
  phrases: string[];
}

const QUOTED = /"([^"]*)"/g;
const WORD = /[\p{L}\p{N}]+/gu;
const BETWEEN = '[^\\pL\\pN]+';

/** Null where the text holds no word. */
export function parseSearch(text: string): SearchText | null {
  const words = queryWords(text).map(({ word }) => word);
  if (words.length === 0) return null;
  const phrases = [...text.matchAll(QUOTED)]
    .map(([, quoted = '']) => quoted.match(WORD) ?? [])
    .filter((phrase) => phrase.length > 1);
  return { words, phrases: [...new Set(phrases.map(phrasePattern))] };
}

/** Words of letters and digits need no escapes; between them may stand anything that is neither. */
function phrasePattern(words: readonly string[]): string {
  return `(?i)(?:^|[^\\pL\\pN])${words.join(BETWEEN)}(?:[^\\pL\\pN]|$)`;
}
