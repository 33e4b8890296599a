// The words of a span's texts as one document, and of a query. The document is the plain text of
// prompt and response, its words are those of words.ts. documentTerms runs for every span with text.
import { asciiWords } from './ascii_words.ts';
import { plainText } from './plain_text.ts';
import { clearWords, joinedWords, splitWords, wordList } from './words.ts';

/** What is stored of the words of prompt and response, as one document. */
export interface DocumentTerms {
  /** Every word in order, with a space between each and the next. */
  words: string;
  /** Number of words. */
  dl: number;
}

/** Words of the current text: the functions are synchronous, so there is one at a time. */
const list = wordList(false);

/** Returns the words of a text in order. */
export function wordsOf(text: string): string[] {
  clearWords(list);
  splitWords(text, list);
  return list.count === 0 ? [] : joinedWords(list).split(' ');
}

/** Returns the words of prompt and response, as stored, together. */
export function documentTerms(prompt: string, response: string): DocumentTerms {
  const texts = [plainText(prompt), plainText(response)];
  const terms = asciiWords(texts);
  if (terms !== null) return terms;
  clearWords(list);
  for (const text of texts) splitWords(text, list);
  return { words: joinedWords(list), dl: list.count };
}
