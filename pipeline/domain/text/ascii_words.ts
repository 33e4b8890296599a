// The words of texts of ASCII characters alone, which most texts are: as words.ts splits them, at half
// the cost. It takes plain texts, and returns their words as they are stored; null if a text has any
// other character.
import type { DocumentTerms } from './text_terms.ts';

const SPACE = 0x20;
/** Bytes of a text that are kept between texts; a larger one gets arrays of its own. */
const BYTES_KEPT = 64 * 1024;
/** Values of a byte that is no character of a word. */
const SEPARATOR = 0;
const NOT_ASCII = 255;
/** By byte: the folded character, or one of the above. */
const FOLDED = Uint8Array.from({ length: 256 }, (_, code) => {
  const character = String.fromCharCode(code);
  if (code > 127) return NOT_ASCII;
  return /[A-Za-z0-9]/.test(character) ? character.toLowerCase().charCodeAt(0) : SEPARATOR;
});

const kept = { from: Buffer.alloc(BYTES_KEPT), to: Buffer.alloc(BYTES_KEPT) };

/** Returns the words of texts together; null if they are not ASCII. A word never continues into the next text. */
export function asciiWords(texts: readonly string[]): DocumentTerms | null {
  const length = texts.reduce((sum, text) => sum + text.length + 1, 0);
  const { from, to } =
    length <= BYTES_KEPT ? kept : { from: Buffer.allocUnsafe(length), to: Buffer.allocUnsafe(length) };
  let end = 0;
  for (const text of texts) {
    // A text with other characters needs more bytes than it has characters.
    if (from.write(text, end, text.length, 'utf8') !== text.length) return null;
    end += text.length;
    from[end++] = SPACE;
  }
  let at = 0;
  let dl = 0;
  // Every text ends with a space, so a word ends within the texts.
  for (let index = 0; index < end; index += 1) {
    let unit = FOLDED[from[index] ?? 0] ?? 0;
    if (unit === SEPARATOR) continue;
    while (unit !== SEPARATOR) {
      if (unit === NOT_ASCII) return null;
      to[at++] = unit;
      unit = FOLDED[from[++index] ?? 0] ?? 0;
    }
    to[at++] = SPACE;
    dl += 1;
  }
  return { words: to.toString('latin1', 0, Math.max(0, at - 1)), dl };
}
