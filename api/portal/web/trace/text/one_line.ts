// Makes names and texts safe to show in one line. Control characters and marks of direction get a
// visible sign, so that a name can neither break the layout nor pretend to be another one.

const SIGNS: readonly [from: number, to: number][] = [
  [0x00, 0x1f],
  [0x7f, 0x9f],
  [0x200b, 0x200f],
  [0x2028, 0x202e],
  [0x2060, 0x2064],
  [0x2066, 0x2069],
  [0xfeff, 0xfeff],
];
const CONTROL_PICTURES = 0x2400;

const isHidden = (code: number): boolean => SIGNS.some(([from, to]) => code >= from && code <= to);

function signOf(code: number): string {
  if (code <= 0x1f) return String.fromCharCode(CONTROL_PICTURES + code);
  if (code === 0x7f) return '␡';
  return `‹${code.toString(16).toUpperCase().padStart(4, '0')}›`;
}

/** Returns a text in one line with a visible sign for each hidden character. */
export function oneLine(text: string): string {
  let shown = '';
  let from = 0;
  for (let i = 0; i < text.length; i += 1) {
    const code = text.charCodeAt(i);
    if (!isHidden(code)) continue;
    shown += text.slice(from, i) + signOf(code);
    from = i + 1;
  }
  return from === 0 ? text : shown + text.slice(from);
}

/** Returns the beginning of a text in one line, with a space in the place of line breaks and tabs. */
export function preview(text: string, charsMax: number): string {
  // Runs of white space become one space each, so a longer beginning may be needed to fill the line.
  const begin = text
    .slice(0, charsMax * 4)
    .replaceAll(/\s+/g, ' ')
    .trim();
  const shown = begin.slice(0, charsMax).toWellFormed();
  return oneLine(shown) + (begin.length > charsMax || text.length > charsMax * 4 ? '…' : '');
}
