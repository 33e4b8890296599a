// The words of a span's texts, counted so that BM25 search need not read the texts again. The
// document is the plain text of prompt and response, its words are those of words.ts.
//
// This runs for every span with text, so words are counted by their hashes, in a table that is
// reused between calls. Hashes are stored and therefore the same everywhere; the table's layout is
// salted.
import { randomInt } from 'node:crypto';
import { plainText } from './plain_text.ts';
import { fnvOfCodeUnits, isStopHash } from './stop_words.ts';
import { clearWords, joinedWords, splitWords, wordList } from './words.ts';

/** What is stored of the words of prompt and response, as one document. */
export interface DocumentTerms {
  /** Every word in order, with a space between each and the next. */
  words: string;
  /** Number of words. */
  dl: number;
  /**
   * Hash of every occurrence after the first of each word that is not a stop word, ascending: tf =
   * 1 + count(hash).
   */
  reps: number[];
  /** The same for stop words. */
  stop_reps: number[];
}

export interface QueryWord {
  word: string;
  hash: number;
  /** True when the word is counted in stop_reps instead of reps. */
  stop: boolean;
}

/** Words of the current text: the functions are synchronous, so there is one at a time. */
const list = wordList(false);

/** Returns the hash of a word; unsigned 32 bits. */
export function wordHash(word: string): number {
  return fnvOfCodeUnits(word);
}

/** Returns the words of a text in order. */
export function wordsOf(text: string): string[] {
  clearWords(list);
  splitWords(text, list);
  return list.count === 0 ? [] : joinedWords(list).split(' ');
}

/** Returns the distinct words of a query, in order, with what is needed to find and count them. */
export function queryWords(query: string): QueryWord[] {
  return [...new Set(wordsOf(query))].map((word) => {
    const hash = wordHash(word);
    return { word, hash, stop: isStopHash(hash) };
  });
}

/** Size kept between documents; a larger document gets a larger table temporarily. */
const SLOTS_KEPT = 4096;
/**
 * Table of the distinct words. A slot is taken when its stamp is the document's, so nothing is
 * cleared in between.
 */
let slotHashes = new Int32Array(SLOTS_KEPT);
let slotStamps = new Int32Array(SLOTS_KEPT);
let stamp = 0;
/** Secrets of this process that decide a hash's slot: no sender can choose words that collide. */
const SALT = randomInt(2 ** 32) | 0;
const [FACTOR_1, FACTOR_2] = [randomInt(2 ** 32) | 1, randomInt(2 ** 32) | 1];

/** Returns the slot at which the search for a hash begins in a table of `mask` + 1 slots. */
function slotOf(hash: number, mask: number): number {
  const once = Math.imul(hash ^ SALT, FACTOR_1);
  const twice = Math.imul(once ^ (once >>> 16), FACTOR_2);
  return (twice ^ (twice >>> 16)) & mask;
}

/** Returns the words of prompt and response, as stored, together. */
export function documentTerms(prompt: string, response: string): DocumentTerms {
  clearWords(list);
  splitWords(plainText(prompt), list);
  splitWords(plainText(response), list);
  const terms: DocumentTerms = { words: joinedWords(list), dl: list.count, reps: [], stop_reps: [] };
  const repeats = takeRepeats(list.hashes, list.count);
  const sorted = new Uint32Array(list.hashes.buffer, 0, repeats).sort();
  for (let i = 0; i < repeats; i++) {
    const hash = sorted[i] ?? 0;
    if (isStopHash(hash)) terms.stop_reps.push(hash);
    else terms.reps.push(hash);
  }
  return terms;
}

/**
 * Moves the hashes of repeated words to the front of the first `count` hashes and returns their
 * number.
 */
function takeRepeats(list: Int32Array, count: number): number {
  prepareTable(count);
  const [hashes, stamps, mine] = [slotHashes, slotStamps, stamp];
  const mask = hashes.length - 1;
  let repeats = 0;
  for (let i = 0; i < count; i++) {
    const hash = list[i] ?? 0;
    let slot = slotOf(hash, mask);
    while (stamps[slot] === mine && hashes[slot] !== hash) slot = (slot + 1) & mask;
    if (stamps[slot] === mine) {
      list[repeats++] = hash;
    } else {
      stamps[slot] = mine;
      hashes[slot] = hash;
    }
  }
  return repeats;
}

/** Prepares an empty table with at least two slots a word. */
function prepareTable(count: number): void {
  let slots = SLOTS_KEPT;
  while (slots < count * 2) slots *= 2;
  if (slotHashes.length !== slots || stamp === 0x7fff_ffff) {
    slotHashes = new Int32Array(slots);
    slotStamps = new Int32Array(slots);
    stamp = 0;
  }
  stamp++;
}
