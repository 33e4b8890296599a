// Addresses that are personal: of mailboxes, and of machines on the Internet. In: a text. Out: where they stand.
// Linear in the text: an @ looks at a bounded number of characters on both sides, and patterns are bounded in length.
import { isIPv6 } from 'node:net';
import { WORD_START, type Place } from './pii_numbers.ts';

/** RFC 5321, section 4.5.3.1: octets; counted here in UTF-16 units, which are never more. */
const LOCAL_MAX = 64;
const DOMAIN_MAX = 253;
const LABEL_MAX = 63;

const LETTER = /[\p{L}\p{M}\p{N}]/u;
/** Scripts that put no space between words: beside Latin letters they are the sentence, not the address. */
const UNSPACED = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Hangul}]/u;
const TOP_LEVEL = /^(?:\p{L}[\p{L}\p{M}]{1,23}|xn--[a-z0-9-]{2,59})$/iu;
/** Pictures in several sizes are named so: icon@2x.png. */
const PICTURE = /^\dx\.(?:png|jpe?g|gif|webp|svg)$/i;
/** Versions of packages are written so: vue@3.4.21-beta.rc. */
const VERSION = /^\d+\.\d+\./;

/** An at sign, also as URLs write it. */
const AT_SIGN = /@|%40/g;

/** Whether a text can hold an address of a mailbox. */
export const mayHoldEmails = (text: string): boolean => text.includes('@') || text.includes('%40');

export function findEmails(text: string, found: (place: Place) => void): void {
  for (const { 0: sign, index: at } of text.matchAll(AT_SIGN)) {
    const start = localStart(text, at);
    if (start < 0) continue;
    const end = domainEnd(text, at + sign.length);
    if (end >= 0) found([start, end]);
  }
}

/** Where the local part before an @ begins; -1 where there is none. */
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

function isLocal(char: string): boolean {
  if (char < '\u0080') return /[A-Za-z0-9._%+'-]/.test(char);
  return LETTER.test(char);
}

/** In JSON within a text, the letters behind a backslash are no part of the word that follows. */
function afterEscape(text: string, start: number): number {
  if ('nrtbf'.includes(text[start] ?? ' ')) return start + 1;
  return /^u[0-9A-Fa-f]{4}/.test(text.slice(start, start + 5)) ? start + 5 : start;
}

/** Where the domain after an @ ends; -1 where there is none with a dot and a name at the top. */
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

const OCTET = String.raw`(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`;
const IPV4 = new RegExp(String.raw`(?=\d)${WORD_START}(?<!\d\.)(?:${OCTET}\.){3}${OCTET}(?![A-Za-z0-9_]|\.\d|\.[a-z]|-[A-Za-z])`, 'g');
/** Four numbers with dots are a version where the word before says so. */
const NAMES_VERSION =
  /(?:\b(?:v|ver|version|release|rev|revision|build|chapter|section|sect|clause|article|firmware|driver|package|oid|snmp|python|java|dotnet|windows|chrome|chromium|firefox|safari|edge|runtime|sdk|api|schema|upgrade[d]? to)|§)[ :=.#"']{0,3}$/i;
const VERSION_CHARS = 24;
/** A name joined to the numbers. */
const JOINED = /[A-Za-z][/-]$/;
const HOST_BEFORE = /[A-Za-z0-9]\.[A-Za-z0-9.-]*[A-Za-z]\/$/;
const PORT_BEHIND = /^:\d{2,5}/;

export function findIpv4(text: string, found: (place: Place) => void): void {
  for (const match of text.matchAll(IPV4)) {
    const end = match.index + match[0].length;
    const before = text.slice(Math.max(0, match.index - VERSION_CHARS), match.index);
    if (NAMES_VERSION.test(before)) continue;
    // Chrome/119.0.6045.105 is a version; db.internal/10.1.2.3 and db/10.1.2.3:5432 are machines.
    if (JOINED.test(before) && !HOST_BEFORE.test(before) && !PORT_BEHIND.test(text.slice(end, end + 6))) continue;
    found([match.index, end]);
  }
}

const IPV6 = new RegExp(
  String.raw`(?=[0-9A-Fa-f]{0,4}:)(?:(?<![A-Za-z0-9_:.])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))[0-9A-Fa-f:]{3,39}(?:(?:\.\d{1,3}){3})?(?![A-Za-z0-9_])`,
  'g',
);

export function findIpv6(text: string, found: (place: Place) => void): void {
  for (const match of text.matchAll(IPV6)) {
    const whole = match[0];
    // A colon behind an address is the sentence's.
    const shown = whole.endsWith(':') && !whole.endsWith('::') ? whole.slice(0, -1) : whole;
    // Names in code are joined by :: too; eight pairs are the address of a device.
    if (!/\d/.test(shown) || /^(?:[0-9A-Fa-f]{2}:){7}[0-9A-Fa-f]{2}$/.test(shown)) continue;
    if (isIPv6(shown)) found([match.index, match.index + shown.length]);
  }
}
