// Phrases in texts: their words follow one another in the words of a span's texts, which are those of
// text_terms.ts. Pure; linear in the length of the texts.
import { documentTerms } from './text_terms.ts';

/**
 * Returns true if the plain text of prompt and response, as one document, has every phrase.
 * @param phrases each with a space between a word and the next, as parseSearch returns them
 */
export function hasPhrases(prompt: string, response: string, phrases: readonly string[]): boolean {
  if (phrases.length === 0) return true;
  const words = ` ${documentTerms(prompt, response).words} `;
  return phrases.every((phrase) => words.includes(` ${phrase} `));
}
