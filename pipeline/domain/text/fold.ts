// The characters of words: which belong to a word, and how a word is written in the index: NFKC,
// lower case, without diacritics, ß as ss. Pure.
//
// Marks of scripts in which they are letters (vowel signs of Indic scripts and of Thai, voicing
// marks of kana) are no diacritics and stay.

/** Kind of a character, by how it makes words. */
export const SEPARATOR = 0;
/** A letter, mark or digit of a script that is written with spaces. */
export const LETTER = 1;
/** A character of a script that is written without spaces: its words are pairs of characters. */
export const PAIRED = 2;
export type CharKind = typeof SEPARATOR | typeof LETTER | typeof PAIRED;

const WORD_CHAR = /[\p{L}\p{M}\p{N}]/u;
/** By script extensions, so that the marks of length and repetition of Japanese are included. */
const PAIRED_CHAR = /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Hangul}\p{scx=Thai}]/u;
const DIACRITICS =
  /[[\p{M}&&[\p{sc=Zinh}\p{sc=Zyyy}\p{sc=Latin}\p{sc=Greek}\p{sc=Cyrillic}\p{sc=Arabic}\p{sc=Hebrew}\p{sc=Syriac}]]--[\u3099\u309a]]/gv;
/**
 * Marks beyond the first 30 of a run are left out, as in the stream-safe text format of Unicode:
 * normalization takes the square of the length of a run of marks.
 */
const EXCESS_MARKS = /(\p{M}{30})\p{M}+/gu;
const SHARP_S = /ß/g;
/** A final sigma depends on what follows it, which would make the same letter two. */
const FINAL_SIGMA = /ς/g;

/** By code unit: 0 is unknown, else the kind plus 1. Filled on demand. */
const kinds = new Uint8Array(65_536);

function kindOf(character: string): CharKind {
  if (!WORD_CHAR.test(character)) return SEPARATOR;
  return PAIRED_CHAR.test(character) && !isDiacritic(character) ? PAIRED : LETTER;
}

/** Returns the kind of a code point. */
export function charKind(codePoint: number): CharKind {
  if (codePoint > 0xffff) return kindOf(String.fromCodePoint(codePoint));
  const known = kinds[codePoint] ?? 0;
  if (known !== 0) return (known - 1) as CharKind;
  const kind = kindOf(String.fromCharCode(codePoint));
  kinds[codePoint] = kind + 1;
  return kind;
}

export const isDiacritic = (character: string): boolean => character.search(DIACRITICS) !== -1;

/** Returns a run of word characters as the index has it; it may contain separators then. */
export function fold(run: string): string {
  return run
    .replace(EXCESS_MARKS, '$1')
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFD')
    .replace(DIACRITICS, '')
    .normalize('NFC')
    .replace(SHARP_S, 'ss')
    .replace(FINAL_SIGMA, 'σ');
}
