// Sets one member of a JSON object in its text; all other bytes stay as they were sent (numbers of
// any length, order, white space, repeated names). Takes text that has been parsed as a JSON
// object; returns the text with one top-level member set.

interface Member {
  name: string;
  /** Position of the value in the text. */
  start: number;
  end: number;
}

const SPACE = new Set([' ', '\t', '\n', '\r']);

/**
 * Sets a top-level member to a value given as JSON text. A missing member is inserted first. Of a
 * repeated name the last one is set, because parsers take that one.
 * @param text one valid JSON object; may hold UTF-8 bytes as latin1, since JSON syntax is ASCII
 */
export function setMember(text: string, name: string, json: string): string {
  const open = text.indexOf('{');
  const found = lastMember(text, name);
  if (found !== null) return text.slice(0, found.start) + json + text.slice(found.end);
  const empty = text.charAt(skipSpace(text, open + 1)) === '}';
  return `${text.slice(0, open + 1)}${JSON.stringify(name)}:${json}${empty ? '' : ','}${text.slice(open + 1)}`;
}

function lastMember(text: string, name: string): Member | null {
  let found: Member | null = null;
  for (const member of membersOf(text)) if (member.name === name) found = member;
  return found;
}

/** Yields the top-level members of a JSON object, with the positions of their values. */
export function* membersOf(text: string): Generator<Member> {
  let at = skipSpace(text, text.indexOf('{') + 1);
  while (text.charAt(at) === '"') {
    const keyEnd = endOfString(text, at);
    const start = skipSpace(text, skipSpace(text, keyEnd) + 1);
    const end = endOfValue(text, start);
    yield { name: JSON.parse(text.slice(at, keyEnd)) as string, start, end };
    at = skipSpace(text, end);
    if (text.charAt(at) !== ',') break;
    at = skipSpace(text, at + 1);
  }
}

export function skipSpace(text: string, from: number): number {
  let at = from;
  while (SPACE.has(text.charAt(at))) at++;
  return at;
}

/** Returns the position after a string that begins at `from`. */
export function endOfString(text: string, from: number): number {
  let quote = text.indexOf('"', from + 1);
  while (quote > 0) {
    let slashes = 0;
    while (text.charAt(quote - 1 - slashes) === '\\') slashes++;
    if (slashes % 2 === 0) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

function endOfValue(text: string, from: number): number {
  let depth = 0;
  let at = from;
  while (at < text.length) {
    const char = text.charAt(at);
    if (char === '"') {
      at = endOfString(text, at);
      if (depth === 0) return at;
      continue;
    }
    if (char === '{' || char === '[') depth++;
    else if (depth === 0 && (char === ',' || char === '}' || char === ']' || SPACE.has(char))) return at;
    else if (char === '}' || char === ']') {
      depth--;
      if (depth === 0) return at + 1;
    }
    at++;
  }
  return at;
}
