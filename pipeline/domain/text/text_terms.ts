// The words of a span's texts, counted so that BM25 search need not read the texts again. A word is
// a run of Unicode letters and digits in lower case; its hash is FNV-1a 32 over its UTF-16 code
// units.
//
// This runs for every span with text, so ASCII words are hashed in place, without substrings, into
// a table that is reused between calls. Hashes are stored and therefore the same everywhere; the
// table's layout is salted.
import { randomInt } from 'node:crypto';
import { fnvOfCodeUnits, isStopHash } from './stop_words.ts';

/** What is stored of the words of prompt and response, as one document. */
export interface DocumentTerms {
  /** Number of words. */
  dl: number;
  /**
   * Hash of every occurrence after the first of each word that is not a stop word, ascending: tf =
   * 1 + count(hash).
   */
  reps: number[];
  /** The same for stop words. */
  stop_reps: number[];
  /**
   * Distinct words, in order of appearance and joined by a space, that contain or touch a character
   * outside ASCII. The text index counts every such character as a letter, so it would not find
   * these words by itself.
   */
  extra_words: string;
}

export interface QueryWord {
  word: string;
  hash: number;
  /** True when the word is counted in stop_reps instead of reps. */
  stop: boolean;
}

const FNV_OFFSET = 0x811c9dc5 | 0;
const FNV_PRIME = 0x01000193;
const WORD = /[\p{L}\p{N}]+/gu;
const WORD_CHAR = /^[\p{L}\p{N}]$/u;

/**
 * By UTF-16 code unit: lower-cased code of an ASCII letter or digit, 0 for other ASCII, FOREIGN for
 * everything else.
 */
const FOREIGN = 0xffff;
const ASCII_WORD = new Uint16Array(65_536).fill(FOREIGN);
for (let code = 0; code < 128; code++) {
  const char = String.fromCharCode(code);
  ASCII_WORD[code] = /[A-Za-z0-9]/.test(char) ? char.toLowerCase().charCodeAt(0) : 0;
}

/** 0: not looked up yet, 1: letter or digit, 2: neither. Filled on demand. */
const bmpClass = new Uint8Array(65_536);

function isWordCodePoint(codePoint: number): boolean {
  if (codePoint > 0xffff) return WORD_CHAR.test(String.fromCodePoint(codePoint));
  if (bmpClass[codePoint] === 0) bmpClass[codePoint] = WORD_CHAR.test(String.fromCharCode(codePoint)) ? 1 : 2;
  return bmpClass[codePoint] === 1;
}

/** Returns the hash of a lower-cased word; unsigned 32 bits. */
export function wordHash(word: string): number {
  return fnvOfCodeUnits(word);
}

/** Returns the distinct words of a query, in order, with what is needed to find and count them. */
export function queryWords(query: string): QueryWord[] {
  const words = new Set<string>();
  for (const match of query.matchAll(WORD)) words.add(match[0].toLowerCase());
  return [...words].map((word) => {
    const hash = wordHash(word);
    return { word, hash, stop: isStopHash(hash) };
  });
}

/** Sizes kept between documents; a larger document gets larger arrays temporarily. */
const SLOTS_KEPT = 4096;
const UNITS_KEPT = 64 * 1024;

/** Buffers of the current document: documentTerms is synchronous, so there is one at a time. */
let units = new Uint16Array(UNITS_KEPT);
let unitBytes = Buffer.from(units.buffer);
/** The hash of every word, in order; a text of n characters has at most (n + 1) / 2 words. */
let wordHashes = new Int32Array(UNITS_KEPT);
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

/** Returns the words of prompt and response together. */
export function documentTerms(prompt: string, response: string): DocumentTerms {
  reserve(Math.max(prompt.length, response.length), prompt.length + response.length + 2);
  const extra = new Set<string>();
  const dl = scan(response, scan(prompt, 0, extra), extra);
  const repeats = takeRepeats(dl);
  const terms: DocumentTerms = {
    dl,
    reps: [],
    stop_reps: [],
    extra_words: extra.size === 0 ? '' : [...extra].join(' '),
  };
  const sorted = new Uint32Array(wordHashes.buffer, 0, repeats).sort();
  for (let i = 0; i < repeats; i++) {
    const hash = sorted[i] ?? 0;
    if (isStopHash(hash)) terms.stop_reps.push(hash);
    else terms.reps.push(hash);
  }
  return terms;
}

/** Makes room for the longest text and all words, and releases what a huge document needed. */
function reserve(longest: number, characters: number): void {
  const unitsWanted = Math.max(longest, UNITS_KEPT);
  if (units.length !== unitsWanted) {
    units = new Uint16Array(unitsWanted);
    unitBytes = Buffer.from(units.buffer);
  }
  const wordsWanted = Math.max(characters >>> 1, UNITS_KEPT);
  if (wordHashes.length !== wordsWanted) wordHashes = new Int32Array(wordsWanted);
}

/**
 * Appends the hash of each word of a text to the first `count` hashes and returns the new count. A
 * word never continues into the next text.
 */
function scan(text: string, count: number, extra: Set<string>): number {
  const length = text.length;
  // Reading code units from a typed array is several times faster than from the string.
  unitBytes.write(text, 0, 'utf16le');
  const codes = units;
  const out = wordHashes;
  let words = count;
  let afterForeign = false;
  let i = 0;
  while (i < length) {
    let letter = ASCII_WORD[codes[i] ?? 0] ?? 0;
    if (letter === 0) {
      afterForeign = false;
      i++;
      continue;
    }
    const start = i;
    let hash = FNV_OFFSET;
    while (letter !== 0 && letter !== FOREIGN) {
      hash = Math.imul(hash ^ letter, FNV_PRIME);
      letter = ++i < length ? (ASCII_WORD[codes[i] ?? 0] ?? 0) : 0;
    }
    if (letter === FOREIGN) {
      const word = foreignWord(text, start);
      if (word !== '') {
        out[words++] = wordHash(word.toLowerCase());
        extra.add(word.toLowerCase());
      }
      i = start + (word === '' ? charLength(text, start) : word.length);
      afterForeign = true;
      continue;
    }
    if (afterForeign) extra.add(text.slice(start, i).toLowerCase());
    afterForeign = false;
    out[words++] = hash;
  }
  return words;
}

/**
 * Returns the word from `start` on that contains, or is followed by, a character outside ASCII;
 * empty when the character at `start` is neither letter nor digit.
 */
function foreignWord(text: string, start: number): string {
  let end = start;
  while (end < text.length) {
    const codePoint = text.codePointAt(end) ?? 0;
    if (codePoint < 128 ? ASCII_WORD[codePoint] === 0 : !isWordCodePoint(codePoint)) break;
    end += codePoint > 0xffff ? 2 : 1;
  }
  return text.slice(start, end);
}

function charLength(text: string, index: number): number {
  return (text.codePointAt(index) ?? 0) > 0xffff ? 2 : 1;
}

/**
 * Moves the hashes of repeated words to the front of the first `count` hashes and returns their
 * number.
 */
function takeRepeats(count: number): number {
  prepareTable(count);
  const [hashes, stamps, list, mine] = [slotHashes, slotStamps, wordHashes, stamp];
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
