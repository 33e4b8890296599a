// Finds personal numbers: payment cards, US social security numbers, phones. In: a text. Out: their
// positions. Every search is linear in the text: each pattern is bounded in length, has one way to
// match, and each position starts at most a fixed number of attempts.

/** Position of a find, [start, end) in UTF-16 units. */
export type Place = readonly [start: number, end: number];

export type NumberKind = 'card' | 'ssn' | 'phone';

/**
 * Not within a word. The letter of an escape such as \n does not belong to one, since a text may be
 * JSON within JSON.
 */
const WORD_START = String.raw`(?:(?<![A-Za-z0-9_])|(?<=\\[nrtbf])|(?<=\\u[0-9A-Fa-f]{4}))`;
const WORD_END = '(?![A-Za-z0-9_])';

/**
 * Characters before and after a run of digits that decide whether it stands alone: an escape, a
 * sign, a digit.
 */
const BEFORE_RUN = 8;
const BEHIND_RUN = 3;

/**
 * Seven digits or more, with at most two separators between any two: no card, SSN or phone is
 * shorter.
 */
const RUN = /\d(?:[ \u00a0.()/-]{0,2}\d){6,}/g;
const HAS_RUN = /\d(?:[ \u00a0.()/-]{0,2}\d){6}/;

/** Returns true when a text may contain any of them. Most texts do not and are not read again. */
export function mayHoldNumbers(text: string): boolean {
  return HAS_RUN.test(text);
}

/** Reads each run of digits once for all kinds, and nothing else. */
export function findNumbers(
  text: string,
  kinds: readonly NumberKind[],
  found: (kind: NumberKind, place: Place) => void,
): void {
  for (const { index, 0: run } of text.matchAll(RUN)) {
    const from = Math.max(0, index - BEFORE_RUN);
    const around = text.slice(from, index + run.length + BEHIND_RUN);
    for (const kind of kinds) {
      if (kind === 'card' && run.length >= 13)
        findCards(around, ([start, end]) => {
          found(kind, [from + start, from + end]);
        });
      if (kind === 'ssn' && run.length >= 9)
        findSsns(text, index, run, ([start, end]) => {
          found(kind, [start, end]);
        });
      if (kind === 'phone')
        findPhones(text, index, index + run.length, (place) => {
          found(kind, place);
        });
    }
  }
}

// ---- cards ----

/** Digits in a row, or in the groups printed on cards: 4-4-4-4, 4-4-4-4-3, 4-6-5 and 4-6-4. */
const CARD = new RegExp(
  String.raw`(?=\d)${WORD_START}(?<!\d[.-])(?:\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|\d{4}([ -])\d{6}\2\d{4,5}|\d{13,19})${WORD_END}(?![.-]\d)`,
  'g',
);

/**
 * [first prefix, last prefix, lengths]: issuer ranges of ISO/IEC 7812, as the card schemes publish
 * them.
 */
const CARD_RANGES: readonly (readonly [string, string, readonly number[]])[] = [
  ['4', '4', [13, 16, 19]], // Visa
  ['51', '55', [16]], // Mastercard
  ['2221', '2720', [16]],
  ['34', '34', [15]], // American Express
  ['37', '37', [15]],
  ['6011', '6011', [16, 19]], // Discover
  ['644', '659', [16, 19]],
  ['3528', '3589', [16, 19]], // JCB
  ['300', '305', [14, 16, 19]], // Diners Club
  ['3095', '3095', [14, 16, 19]],
  ['36', '36', [14, 16, 19]],
  ['38', '39', [14, 16, 19]],
  ['62', '62', [16, 17, 18, 19]], // UnionPay
  ['5018', '5018', [13, 14, 15, 16, 17, 18, 19]], // Maestro
  ['5019', '5020', [16, 17, 18, 19]],
  ['5038', '5038', [13, 14, 15, 16, 17, 18, 19]],
  ['5893', '5893', [13, 14, 15, 16, 17, 18, 19]],
  ['6304', '6304', [16, 17, 18, 19]],
  ['6759', '6763', [13, 14, 15, 16, 17, 18, 19]],
  ['2200', '2204', [16, 17, 18, 19]], // Mir
  ['508', '508', [16]], // RuPay
  ['60', '60', [16]],
  ['81', '82', [16]],
  ['9792', '9792', [16]], // Troy
];

function findCards(text: string, found: (place: Place) => void): void {
  for (const match of text.matchAll(CARD)) {
    const whole = match[0];
    // Three digits after four groups may be the card's last group, or its security code.
    const shown = isCard(whole) ? whole : whole.length === 23 && isCard(whole.slice(0, 19)) ? whole.slice(0, 19) : null;
    if (shown !== null) found([match.index, match.index + shown.length]);
  }
}

/** Returns true for a known issuer, a length that it issues, and a correct Luhn check digit. */
export function isCard(shown: string): boolean {
  const digits = shown.replaceAll(/\D/g, '');
  const known = CARD_RANGES.some(([first, last, lengths]) => {
    const prefix = digits.slice(0, first.length);
    return prefix >= first && prefix <= last && lengths.includes(digits.length);
  });
  return known && !/^(\d)\1*$/.test(digits) && passesLuhn(digits);
}

/**
 * ISO/IEC 7812-1, annex B: with every second digit from the right doubled, the sum of all digits is
 * a multiple of ten.
 */
export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = digits.charCodeAt(digits.length - 1 - i) - 48;
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

// ---- social security numbers ----

/**
 * Area, group and serial as the Social Security Administration assigns them: no 000, 666, 9xx; no
 * 00; no 0000.
 */
const SSN_PARTS = String.raw`(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}`;
const SSN = new RegExp(String.raw`(?=\d)${WORD_START}(?<!\d[ .-]|#)${SSN_PARTS}${WORD_END}(?!-\d| \d|\.\d)`, 'g');
/** Nine digits without separators count only where the text names an SSN. */
const BARE_SSN = new RegExp(String.raw`^(?!000|666|9)\d{3}(?!00)\d\d(?!0000)\d{4}$`);
const NAMES_SSN =
  /(?:\bssn|\bsocial(?: security)?(?: (?:number|no|nr|num))?)[^\dA-Za-z]{0,6}(?:(?:is|was|number|no)[^\dA-Za-z]{1,3})?$/i;

function findSsns(text: string, index: number, run: string, found: (place: Place) => void): void {
  const from = Math.max(0, index - BEFORE_RUN);
  const around = text.slice(from, index + run.length + BEHIND_RUN);
  for (const match of around.matchAll(SSN)) found([from + match.index, from + match.index + match[0].length]);
  const end = index + run.length;
  if (!BARE_SSN.test(run) || /^\w/.test(text.slice(end, end + 1))) return;
  if (NAMES_SSN.test(text.slice(Math.max(0, index - CONTEXT_CHARS), index))) found([index, end]);
}

// ---- phones ----

const PHONE_DIGITS_MIN = 8;
/** Maximum by ITU-T E.164. */
const PHONE_DIGITS_MAX = 15;
/** Characters before a number in which the text may name a phone. */
const CONTEXT_CHARS = 40;

/** Country codes of E.164 by their number of digits; ranges for those of three. */
const CODES_1_2 = new Set(
  '1 7 20 27 30 31 32 33 34 36 39 40 41 43 44 45 46 47 48 49 51 52 53 54 55 56 57 58 60 61 62 63 64 65 66 81 82 84 86 90 91 92 93 94 95 98'.split(
    ' ',
  ),
);
const CODES_3 =
  /^(?:21[0-9]|2[2-69]\d|35\d|37\d|38\d|42[013]|50\d|59\d|6[789]\d|80[08]|85\d|87[08]|88\d|96\d|97\d|99[2-68])/;

const NORTH_AMERICAN = /(?:1[ .-]?)?(?:\([2-9]\d\d\)[ .-]?|[2-9]\d\d[ .-])[2-9]\d\d[ .-]\d{4}(?!\d)/y;
/**
 * The same groups with one separator throughout, outside the numbering plan too: examples and tests
 * contain many numbers such as 555-123-4567 and 123-456-7890. A number that begins with 0 or 10, or
 * has only zeros in the middle, is more likely a count.
 */
const NORTH_AMERICAN_LIKE = /(?:1[ .-])?(?!10)[1-9]\d\d([.-])(?!000)\d{3}\1\d{4}(?!\d)/y;
/** With a national trunk prefix: 030 901820, 020 7946 0958, (02) 9374 4000. */
const TRUNK = /(?:\(0[1-9]\d{0,3}\)[ /-]?|0[1-9]\d{0,3}[ /-])\d{2,8}(?:[ -]\d{2,8}){0,4}(?!\d)/y;
const TRUNK_PAIRS = /0[1-9](?:\.\d\d){4}(?!\d)/y;
const AREA_IN_PARENTHESES = /\(\d{2,5}\)[ -]?\d{3,5}[ -]\d{2,5}(?:[ -]\d{2,5})?(?!\d)/y;

const DATE = /^(?:\d{1,2}[./-]\d{1,2}[./-](?:19|20)\d\d|(?:19|20)\d\d[./-]\d{1,2}[./-]\d{1,2})(?!\d)/;
const DATE_CHARS = 11;
const DECIMAL = /^\+?\d+\.\d+$/;

/**
 * Words that name a phone, in the most common languages of telemetry; up to 20 characters may
 * follow before the number.
 */
const NAMES_PHONE =
  /(?:\b(?:tele)?phone|\btele?f|\btel\b|\bt[eé]l|\bmobil|\bmob\b|\bcell|\bhandy|\bportable\b|whats ?app|\bfax|\bcaller|\bcallback|\b(?:contact|my) (?:no|number|num|nr)\b|тел|моб|電話|携帯|电话|手机|전화)[^\d\n]{0,20}$/iu;
/** Verbs after which a number is a phone when it follows directly. */
const ASKS_TO_CALL =
  /\b(?:call|dial|ring|text|sms|reach|ruf|appelez|chame|llame)(?: (?:me|us|him|her|them|le|at|on|to|back|now))*[ :]{1,2}$/i;

/**
 * Finds the phones of one run: one at its start, and those that begin with + or a parenthesis or
 * follow another phone.
 */
function findPhones(text: string, index: number, end: number, found: (place: Place) => void): void {
  let at = index;
  // A leading + or parenthesis belongs to the number.
  while (at > 0 && (text[at - 1] === '(' || text[at - 1] === '+') && index - at < 2) at--;
  let free = true;
  for (; at < end; at++) {
    const char = text[at];
    if (!free && char !== '+' && char !== '(') continue;
    // A parenthesis may belong to the number or enclose it.
    free = char === '(';
    const phoneEnd = startsPhone(text, at) ? phoneAt(text, at) : -1;
    if (phoneEnd < 0) continue;
    found([at, phoneEnd]);
    at = phoneEnd;
    while (at < end && text[at] === ' ') at++;
    at--;
    free = true;
  }
}

/** Returns true outside of words, longer numbers and amounts. */
function startsPhone(text: string, at: number): boolean {
  const before = text[at - 1];
  if (before === undefined) return true;
  if (/[A-Za-z]/.test(before)) return text[at - 2] === '\\' && /[nrtbf]/.test(before);
  return !/[\d_.,+#$€£%-]/.test(before) && !(before === '(' && text[at] === '(');
}

/** Returns where the phone that begins at `at` ends; -1 when none begins there. */
function phoneAt(text: string, at: number): number {
  if (DATE.test(text.slice(at, at + DATE_CHARS))) return -1;
  const international = internationalAt(text, at);
  if (international >= 0) return international;
  if (text[at] === '+') return -1;
  const isFirst = !/\d[ ./-]$/.test(text.slice(Math.max(0, at - 2), at));
  for (const pattern of [NORTH_AMERICAN, NORTH_AMERICAN_LIKE, TRUNK_PAIRS, TRUNK, AREA_IN_PARENTHESES]) {
    pattern.lastIndex = at;
    const shown = pattern.exec(text)?.[0];
    if (shown === undefined) continue;
    const kept = pattern === TRUNK ? withinDigits(shown, 12) : shown;
    if (!isPhoneShape(text, at, kept, pattern === TRUNK ? 9 : PHONE_DIGITS_MIN) || !isFirst) continue;
    // Three plain groups of digits may be any three numbers.
    if (/^[\d ]+$/.test(kept) && pattern === NORTH_AMERICAN && !isSaidPhone(text, at)) continue;
    return at + kept.length;
  }
  if (!isSaidPhone(text, at)) return -1;
  const shown = digitsFrom(text, at, PHONE_DIGITS_MAX);
  return isPhoneShape(text, at, shown, 7) ? at + shown.length : -1;
}

/**
 * Returns the end of a number with +, 00 or 011, a country code, and at most fifteen digits in all.
 */
function internationalAt(text: string, at: number): number {
  const prefix = text[at] === '+' ? '+' : text.startsWith('011', at) ? '011' : text.startsWith('00', at) ? '00' : null;
  if (prefix === null) return -1;
  const after = text.slice(at + prefix.length, at + prefix.length + 4).replace(/^[ -]/, '');
  const code =
    [1, 2].map((length) => after.slice(0, length)).find((start) => CODES_1_2.has(start)) ?? CODES_3.exec(after)?.[0];
  if (code === undefined) return -1;
  const shown = digitsFrom(text, at, prefix.length + (code === '1' ? 11 : PHONE_DIGITS_MAX) - (prefix === '+' ? 1 : 0));
  const digits = digitsIn(shown) - (prefix === '+' ? 0 : prefix.length);
  if (digits < PHONE_DIGITS_MIN || (code === '1' && digits !== 11)) return -1;
  // Without a plus, a bare row of digits is an id.
  if (
    prefix !== '+' &&
    (/\d[ ./-]$/.test(text.slice(Math.max(0, at - 2), at)) || (/^\d+$/.test(shown) && !isSaidPhone(text, at)))
  )
    return -1;
  return isPhoneShape(text, at, shown, PHONE_DIGITS_MIN) ? at + shown.length : -1;
}

/** Returns up to `max` digits from `at` on with their separators; empty when more digits follow. */
function digitsFrom(text: string, at: number, max: number): string {
  let end = at;
  let digits = 0;
  let gap = 0;
  for (let i = at; i < text.length && gap <= 3; i++) {
    const char = text[i] ?? '';
    if (char >= '0' && char <= '9') {
      if (digits === max) return gap === 0 ? '' : text.slice(at, end);
      digits++;
      gap = 0;
      end = i + 1;
    } else if (' \u00a0.-()/'.includes(char) || (i === at && char === '+')) {
      gap++;
    } else break;
  }
  return text.slice(at, end);
}

/** Returns the leading groups that have at most `max` digits together. */
function withinDigits(shown: string, max: number): string {
  let kept = shown;
  while (digitsIn(kept) > max) kept = kept.slice(0, Math.max(0, kept.search(/[ /-]\d+$/)));
  return kept;
}

function isPhoneShape(text: string, at: number, shown: string, digitsMin: number): boolean {
  const digits = digitsIn(shown);
  if (digits < digitsMin || digits > PHONE_DIGITS_MAX + 3) return false;
  if (DATE.test(shown) || DECIMAL.test(shown)) return false;
  const after = text.slice(at + shown.length, at + shown.length + 2);
  return !/^(?:[\w]|[.,:-]\d|%)/.test(after);
}

function digitsIn(shown: string): number {
  let digits = 0;
  for (let i = 0; i < shown.length; i++) if (shown.charCodeAt(i) >= 48 && shown.charCodeAt(i) <= 57) digits++;
  return digits;
}

function isSaidPhone(text: string, at: number): boolean {
  const before = text.slice(Math.max(0, at - CONTEXT_CHARS), at);
  return NAMES_PHONE.test(before) || ASKS_TO_CALL.test(before);
}
