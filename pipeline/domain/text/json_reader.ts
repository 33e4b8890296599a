// Reads JSON for its texts. In: JSON text, possibly truncated. Out: its strings, its numbers with
// the digits as written, its arrays, and its objects as maps; booleans and null are null. Pure;
// linear in the length of the text; nesting is bounded.
import { DEPTH_MAX } from './nesting.ts';

export type JsonValue = string | null | JsonValue[] | JsonFields;
export type JsonFields = Map<string, JsonValue>;

export interface JsonText {
  value: JsonValue;
  /** True if the text ends before its value does. What is there of the value is read. */
  truncated: boolean;
}

const SPACES = /[ \t\n\r]*/y;
const NUMBER = /-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const LITERAL = /true|false|null/y;
/** Part of an escape at the end of a truncated string. */
const HALF_ESCAPE = /\\(?:u[0-9a-fA-F]{0,3})?$/;
/** Part of a number or literal at the end of a truncated text. */
const HALF_SCALAR = /[-+.\w]*/y;

/** Returns the value of a JSON text; null if the text is not JSON. */
export function readJson(text: string): JsonText | null {
  const reader = new Reader(text);
  try {
    const value = reader.value(0);
    return reader.isAtEnd() ? { value, truncated: reader.truncated } : null;
  } catch (error) {
    if (error instanceof NotJson || error instanceof SyntaxError) return null;
    throw error;
  }
}

class NotJson extends Error {}

class Reader {
  readonly #text: string;
  #at = 0;
  /** Next quote and next backslash: each is looked for once, so that the search stays linear. */
  #quote = -1;
  #backslash = -1;
  truncated = false;

  constructor(text: string) {
    this.#text = text;
  }

  isAtEnd(): boolean {
    this.#match(SPACES);
    return this.#at === this.#text.length;
  }

  value(depth: number): JsonValue {
    if (depth > DEPTH_MAX) throw new NotJson();
    this.#match(SPACES);
    const first = this.#text[this.#at];
    if (first === '"') return this.#string();
    if (first === '[') return this.#array(depth);
    if (first === '{') return this.#object(depth);
    return this.#scalar();
  }

  #array(depth: number): JsonValue[] {
    const items: JsonValue[] = [];
    this.#at++;
    for (let first = true; !this.#ends(']', first); first = false) items.push(this.value(depth + 1));
    return items;
  }

  #object(depth: number): JsonFields {
    const fields: JsonFields = new Map();
    this.#at++;
    for (let first = true; !this.#ends('}', first); first = false) {
      if (this.#text[this.#at] !== '"') throw new NotJson();
      const key = this.#string();
      if (this.truncated || this.#isCut()) return fields;
      if (this.#text[this.#at++] !== ':') throw new NotJson();
      if (this.#isCut()) return fields;
      fields.set(key, this.value(depth + 1));
    }
    return fields;
  }

  /** Steps over what stands before the next item; returns true if the container ends there. */
  #ends(close: string, first: boolean): boolean {
    if (this.truncated || this.#isCut()) return true;
    if (this.#text[this.#at] === close) {
      this.#at++;
      return true;
    }
    if (first) return false;
    if (this.#text[this.#at++] !== ',') throw new NotJson();
    return this.#isCut();
  }

  /** Skips spaces; returns true, and notes it, if the text ends there. */
  #isCut(): boolean {
    if (!this.isAtEnd()) return false;
    this.truncated = true;
    return true;
  }

  #string(): string {
    const start = this.#at + 1;
    let from = start;
    let escaped = false;
    for (;;) {
      if (this.#quote < from) this.#quote = indexFrom(this.#text, '"', from);
      if (this.#backslash < from) this.#backslash = indexFrom(this.#text, '\\', from);
      if (this.#backslash >= this.#quote) break;
      escaped = true;
      from = this.#backslash + 2;
    }
    if (this.#quote === this.#text.length) {
      this.truncated = true;
      this.#at = this.#text.length;
      const rest = this.#text.slice(start);
      return escaped || this.#backslash < this.#quote ? unescaped(withoutHalfEscape(rest)) : rest;
    }
    this.#at = this.#quote + 1;
    const raw = this.#text.slice(start, this.#quote);
    return escaped ? unescaped(raw) : raw;
  }

  #scalar(): string | null {
    const number = this.#match(NUMBER);
    if (number !== '') return number;
    if (this.#match(LITERAL) !== '') return null;
    this.#match(HALF_SCALAR);
    if (this.#at < this.#text.length || this.#text === '') throw new NotJson();
    this.truncated = true;
    return null;
  }

  #match(pattern: RegExp): string {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? '';
    this.#at += found.length;
    return found;
  }
}

/** Returns the place of a character from a position on; the length of the text where there is none. */
function indexFrom(text: string, character: string, from: number): number {
  const index = text.indexOf(character, from);
  return index === -1 ? text.length : index;
}

/** An escaped backslash at the end is whole: only an odd number of backslashes begins an escape. */
function withoutHalfEscape(text: string): string {
  const half = HALF_ESCAPE.exec(text);
  if (half === null) return text;
  let backslashes = 1;
  while (text[half.index - backslashes] === '\\') backslashes++;
  return backslashes % 2 === 0 ? text : text.slice(0, half.index);
}

/** Raw control characters are no JSON, but models write them, so they count as their escapes. */
const CONTROL = /[\0-\x1f]/g;

function unescaped(raw: string): string {
  return JSON.parse(`"${raw.replace(CONTROL, ' ')}"`) as string;
}
