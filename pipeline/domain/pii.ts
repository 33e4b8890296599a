// Personal data in texts: what is found, and what stands in its place.
// Every pattern is bounded in length and begins only where no longer match could have begun before it, so the time is
// linear in the text, whatever the text holds.

const EMAIL =
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}][\p{L}\p{N}._%+-]{0,63}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}\p{L}{2,24}(?![\p{L}\p{N}])/gu;
const SSN = /(?<![\d-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])/g;
const CARD = /(?<![\d.-])\d(?:[ -]?\d){12,18}(?![\d-])/g;
const IPV4 = /(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d]|\.\d)/g;
const IPV6 = /(?<![0-9A-Fa-f:.])(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4}(?![0-9A-Fa-f:])/g;
/** With a country's code; as North America writes them; as others do, with a leading zero. Bare digits are ids, not phones. */
const PHONES = [
  /(?<![\d\p{L}+])\+\d{1,3}(?:[ .-]?\(?\d{2,4}\)?){2,5}(?!\d)/gu,
  /(?<![\d\p{L}.-])(?:\(\d{3}\)[ .-]?|\d{3}[ .-])\d{3}[ .-]\d{4}(?![\d\p{L}]|[-.]\d)/gu,
  /(?<![\d\p{L}.,-])0\d{1,4}[ /-]\d{3,4}[ .-]?\d{3,5}(?![\d\p{L}]|[-.]\d)/gu,
];

/** The text with each find replaced by [EMAIL], [SSN], [CARD], [IP] or [PHONE]. */
export function anonymize(text: string): string {
  if (text === '') return text;
  const emails = text.includes('@') ? text.replace(EMAIL, '[EMAIL]') : text;
  const rest = emails
    .replace(SSN, '[SSN]')
    .replace(CARD, (found) => (isCard(found) ? '[CARD]' : found))
    .replace(IPV4, '[IP]')
    .replace(IPV6, (found) => (isIpv6(found) ? '[IP]' : found));
  return PHONES.reduce((changed, pattern) => changed.replace(pattern, (found) => (isPhone(found) ? '[PHONE]' : found)), rest);
}

/** Luhn's check over 13 to 19 digits that are not all the same. */
function isCard(found: string): boolean {
  const digits = found.replaceAll(/\D/g, '');
  if (/^(\d)\1*$/.test(digits)) return false;
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Eight groups, or fewer around one "::"; a time of day such as 12:30:45 is none. */
function isIpv6(found: string): boolean {
  const halves = found.split('::');
  const groups = found.split(':').filter((group) => group !== '').length;
  if (halves.length === 2) return groups >= 1 && groups <= 7;
  return halves.length === 1 && groups === 8 && !found.startsWith(':') && !found.endsWith(':');
}

/** Numbers have eight to fifteen digits (E.164). */
function isPhone(found: string): boolean {
  const digits = found.replaceAll(/\D/g, '').length;
  return digits >= 8 && digits <= 15;
}
