// Finds personal addresses: of mailboxes, and of machines on the Internet. In: a text. Out: their
// positions. Linear in the text: for each @ a bounded number of characters is read on both sides,
// and patterns are bounded in length.
import { isIPv6 } from 'node:net';
import type { Place } from './numbers.ts';

/** RFC 5321, section 4.5.3.1, in octets; counted here in UTF-16 units, which are never more. */
const LOCAL_MAX = 64;
const DOMAIN_MAX = 253;
const LABEL_MAX = 63;

const LETTER = /[\p{L}\p{M}\p{N}]/u;
/**
 * Scripts without spaces between words: next to Latin letters they belong to the sentence, not to
 * the address.
 */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Hangul}]/u;
const TOP_LEVEL = /^(?:\p{L}[\p{L}\p{M}]{1,23}|xn--[a-z0-9-]{2,59})$/iu;
/** File names of pictures in several sizes: icon@2x.png. */
const PICTURE = /^\dx\.(?:png|jpe?g|gif|webp|svg)$/i;
/** Package versions: vue@3.4.21-beta.rc. */
const VERSION = /^\d+\.\d+\./;

/** An at sign, also in the form that URLs use. */
const AT_SIGN = /@|%40/g;

/** Returns true when a text may contain a mailbox address. */
export const mayHoldEmails = (text: string): boolean => text.includes('@') || text.includes('%40');

export function findEmails(text: string, found: (place: Place) => void): void {
  for (const { 0: sign, index: at } of text.matchAll(AT_SIGN)) {
    const start = localStart(text, at);
    if (start < 0) continue;
    const end = domainEnd(text, at + sign.length);
    if (end >= 0) found([start, end]);
  }
}

/** Returns where the local part before an @ begins; -1 when there is none. */
function localStart(text: string, at: number): number {
  let start = at;
  let isLatin = false;
  while (start > 0 && at - start <= LOCAL_MAX) {
    const char = text[start - 1] ?? '';
    if (!isLocal(char) || (isLatin && UNSPACED.test(char))) break;
    isLatin ||= char < '\u0080';
    start--;
  }
  if (text[start - 1] === '\\') start = afterEscape(text, start);
  while (start < at && "'.%+-".includes(text[start] ?? '')) start++;
  return at - start < 1 || at - start > LOCAL_MAX || text[at - 1] === '.' ? -1 : start;
}

/** By ASCII code: 1 for characters that a local part may contain. */
const ASCII_LOCAL = Uint8Array.from({ length: 128 }, (_, code) =>
  /[A-Za-z0-9._%+'-]/.test(String.fromCharCode(code)) ? 1 : 0,
);

function isLocal(char: string): boolean {
  return char < '\u0080' ? ASCII_LOCAL[char.charCodeAt(0)] === 1 : LETTER.test(char);
}

/** In JSON within a text, the letter after a backslash does not belong to the word that follows. */
function afterEscape(text: string, start: number): number {
  if ('nrtbf'.includes(text[start] ?? ' ')) return start + 1;
  return /^u[0-9A-Fa-f]{4}/.test(text.slice(start, start + 5)) ? start + 5 : start;
}

/**
 * Returns where the domain after an @ ends; -1 when there is none with a dot and a top-level name.
 */
function domainEnd(text: string, from: number): number {
  let end = -1;
  let labelStart = from;
  let labels = 0;
  let isLatin = false;
  for (let i = from; i <= text.length && i - from <= DOMAIN_MAX; i++) {
    const char = text[i] ?? '';
    const isPart = char !== '' && (char === '-' || (LETTER.test(char) && !(isLatin && UNSPACED.test(char))));
    if (isPart) {
      isLatin ||= char < '\u0080';
      continue;
    }
    const label = text.slice(labelStart, i);
    if (label === '' || label.length > LABEL_MAX || label.startsWith('-') || label.endsWith('-')) break;
    labels++;
    if (labels > 1 && TOP_LEVEL.test(label)) end = i;
    if (char !== '.') break;
    labelStart = i + 1;
  }
  if (end < 0) return -1;
  const domain = text.slice(from, end);
  return PICTURE.test(domain) || VERSION.test(domain) ? -1 : end;
}

/**
 * The start of a word (see numbers.ts), then four numbers up to 255. Written out, so that the
 * linter can check it.
 */
const IPV4 =
  /(?=\d)(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))(?<!\d\.)(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)\.){3}(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?![A-Za-z0-9_]|\.\d|\.[a-z]|-[A-Za-z])/g;

/**
 * Reports every dotted quad, whatever word precedes it: "version 1.2.3.4" may be an address, and an
 * address left in the text is the worse error. Only a letter joined to the quad (v1.2.3.4), a fifth
 * part (1.2.3.4.5) or a suffix (1.2.3.4-beta) proves that it is a version.
 */
export function findIpv4(text: string, found: (place: Place) => void): void {
  for (const match of text.matchAll(IPV4)) found([match.index, match.index + match[0].length]);
}

const IPV6 =
  /(?=[0-9A-Fa-f]{0,4}:)(?:(?<![A-Za-z0-9_:.])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))[0-9A-Fa-f:]{3,39}(?:(?:\.\d{1,3}){3})?(?![A-Za-z0-9_])/g;

export function findIpv6(text: string, found: (place: Place) => void): void {
  for (const match of text.matchAll(IPV6)) {
    const whole = match[0];
    // A colon after an address belongs to the sentence.
    const shown = whole.endsWith(':') && !whole.endsWith('::') ? whole.slice(0, -1) : whole;
    // Names in code are joined by :: too; eight pairs are a device's address.
    if (!/\d/.test(shown) || /^(?:[0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}$/.test(shown)) continue;
    if (isIPv6(shown)) found([match.index, match.index + shown.length]);
  }
}
