// Compares two JSON texts by key: the order of keys and the white space between them mean nothing.
// Lists are aligned item by item. The result has the rows of a text comparison over both values in
// indented form; a string with line breaks stands between """ as lines of its own. Pure but for the
// clock.
import { type Deadline, editScript } from './edits.ts';
import { DIFF_BOUNDS, DIFF_CHARS_MAX, type Diff, type DiffBounds } from './shape.ts';
import { addLines, addPair, addSame, newWork, textDiff, type Work } from './text_diff.ts';

/** A number whose digits do not fit into a double; it compares by its digits. */
class LongNumber {
  readonly digits: string;
  constructor(digits: string) {
    this.digits = digits;
  }
}
type Json = null | boolean | number | string | LongNumber | Json[] | { [key: string]: Json };

/** Digits that a double always holds exactly. */
const EXACT_DIGITS = 15;

/**
 * Compares two JSON texts. Texts that are no JSON, or are nested too deeply, are compared as texts.
 */
export function jsonDiff(left: string, right: string, bounds: DiffBounds = DIFF_BOUNDS): Diff {
  if (left.length + right.length > DIFF_CHARS_MAX) return textDiff(left, right, bounds);
  try {
    return new JsonDiff(bounds).compare(parse(left), parse(right));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof RangeError) return textDiff(left, right, bounds);
    throw error;
  }
}

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

function parse(text: string): Json {
  const keepDigits: Reviver = (_key, value, context) => {
    const source = context?.source ?? '';
    return typeof value === 'number' && source.length > EXACT_DIGITS && String(value) !== source
      ? new LongNumber(source)
      : value;
  };
  return JSON.parse(text, keepDigits) as Json;
}

const isList = (value: Json): value is Json[] => Array.isArray(value);
const isObject = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !isList(value) && !(value instanceof LongNumber);
const isLong = (value: Json): value is string => typeof value === 'string' && value.includes('\n');
const scalarText = (value: Json): string => (value instanceof LongNumber ? value.digits : JSON.stringify(value));

class JsonDiff {
  readonly #work: Work;
  readonly #deadline: Deadline;
  readonly #ids = new Map<string, number>();
  readonly #known = new Map<Json, number>();
  #gaveUp = false;

  constructor(bounds: DiffBounds) {
    this.#work = newWork(bounds);
    this.#deadline = this.#work.deadline;
  }

  compare(left: Json, right: Json): Diff {
    this.#pair(left, right, '', '');
    const { rows, removed, added, unmarked } = this.#work;
    return { form: 'json', rows, removed, added, gave_up: this.#gaveUp, unmarked };
  }

  /** Returns a number that equal values share, whatever the order of their keys. */
  #id(value: Json): number {
    if (typeof value !== 'object' || value === null) return this.#idOf(scalarText(value));
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    const id = this.#idOf(this.#shape(value));
    this.#known.set(value, id);
    return id;
  }

  #shape(value: Exclude<Json, string | number | boolean | null>): string {
    if (value instanceof LongNumber) return value.digits;
    if (isList(value)) return `[${value.map((item) => this.#id(item)).join(',')}]`;
    const members = Object.entries(value).map(([key, item]) => `${JSON.stringify(key)}:${this.#id(item)}`);
    return `{${members.sort().join(',')}}`;
  }

  #idOf(text: string): number {
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    this.#ids.set(text, this.#ids.size);
    return this.#ids.size - 1;
  }

  #pair(left: Json, right: Json, indent: string, name: string): void {
    if (isObject(left) && isObject(right)) this.#objects(left, right, indent, name);
    else if (isList(left) && isList(right)) this.#lists(left, right, indent, name);
    else if (typeof left === 'string' && typeof right === 'string' && (isLong(left) || isLong(right)))
      this.#strings(left, right, indent, name);
    else if (isScalar(left) && isScalar(right)) {
      const [from, to] = [`${indent}${name}${scalarText(left)}`, `${indent}${name}${scalarText(right)}`];
      if (from === to) addSame(this.#work, from);
      else addPair(this.#work, from, to);
    } else {
      this.#only('left', left, indent, name);
      this.#only('right', right, indent, name);
    }
  }

  #objects(left: { [key: string]: Json }, right: { [key: string]: Json }, indent: string, name: string): void {
    addSame(this.#work, `${indent}${name}{`);
    const inner = `${indent}  `;
    for (const key of new Set([...Object.keys(left), ...Object.keys(right)])) {
      const named = `${JSON.stringify(key)}: `;
      const [a, b] = [own(left, key), own(right, key)];
      if (a !== undefined && b !== undefined) this.#pair(a, b, inner, named);
      else if (a !== undefined) this.#only('left', a, inner, named);
      else if (b !== undefined) this.#only('right', b, inner, named);
    }
    addSame(this.#work, `${indent}}`);
  }

  #lists(left: Json[], right: Json[], indent: string, name: string): void {
    addSame(this.#work, `${indent}${name}[`);
    const inner = `${indent}  `;
    const keysOf = (items: Json[]): string[] => items.map((item) => String(this.#id(item)));
    const script = editScript(keysOf(left), keysOf(right), this.#work.bounds.line_edits, this.#deadline);
    if (script === null) this.#gaveUp = true;
    const whole = [{ equal: false, left: 0, left_end: left.length, right: 0, right_end: right.length }];
    for (const at of script ?? whole) {
      const gone = left.slice(at.left, at.left_end);
      const come = right.slice(at.right, at.right_end);
      for (let i = 0; i < Math.max(gone.length, come.length); i += 1) {
        const [a, b] = [gone[i], come[i]];
        if (a !== undefined && b !== undefined) this.#pair(a, b, inner, '');
        else if (a !== undefined) this.#only('left', a, inner, '');
        else if (b !== undefined) this.#only('right', b, inner, '');
      }
    }
    addSame(this.#work, `${indent}]`);
  }

  #strings(left: string, right: string, indent: string, name: string): void {
    addSame(this.#work, `${indent}${name}"""`);
    const lines = (text: string): string[] => text.split('\n').map((line) => `${indent}${line}`);
    if (!addLines(this.#work, lines(left), lines(right))) this.#gaveUp = true;
    addSame(this.#work, `${indent}"""`);
  }

  /** Adds a value that one side has. */
  #only(side: 'left' | 'right', value: Json, indent: string, name: string): void {
    const add = (line: string): void => {
      if (side === 'left') addPair(this.#work, line, null);
      else addPair(this.#work, null, line);
    };
    if (isObject(value)) {
      add(`${indent}${name}{`);
      for (const [key, item] of Object.entries(value))
        this.#only(side, item, `${indent}  `, `${JSON.stringify(key)}: `);
      add(`${indent}}`);
    } else if (isList(value)) {
      add(`${indent}${name}[`);
      for (const item of value) this.#only(side, item, `${indent}  `, '');
      add(`${indent}]`);
    } else if (isLong(value)) {
      add(`${indent}${name}"""`);
      for (const line of value.split('\n')) add(`${indent}${line}`);
      add(`${indent}"""`);
    } else add(`${indent}${name}${scalarText(value)}`);
  }
}

const isScalar = (value: Json): boolean => !isObject(value) && !isList(value);
const own = (value: { [key: string]: Json }, key: string): Json | undefined =>
  Object.hasOwn(value, key) ? value[key] : undefined;
