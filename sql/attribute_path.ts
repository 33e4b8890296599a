// Filters on fields of a span's attributes, which are stored as JSON text: `attributes.region`,
// `attributes.resource.service.name`. In: the field, an operator and a value, as a caller of the API
// wrote them. Out: the records that sql/queries/attributes/conditions.sql takes as `attributes`.
// Pure. Names and values stay parameters; they never enter the text of a statement.

/** Operators of filters, the same for attributes and for columns. */
export const FILTER_OPS = ['eq', 'ne', 'in', 'not_in', 'gt', 'gte', 'lt', 'lte', 'exists'] as const;
export type FilterOp = (typeof FILTER_OPS)[number];
export type FilterValue = string | number | boolean;

export const ATTRIBUTE_PREFIX = 'attributes.';
const PATH_LENGTH_MAX = 256;
const PATH_KEYS_MAX = 8;
/** Keys and values that JSON text contains as they are, whoever wrote it. Others may be escaped. */
const PLAIN = /^[\w .:-]+$/;
/** Texts that the engine searches for at once (multiSearchAny). */
const NEEDLES_MAX = 255;
const JSON_SPACES = [' ', '\t', '\n', '\r'];

/** Keys of one field, in every way in which its path may be nested. */
export type AttributePath = readonly (readonly string[])[];

export interface AttributeFilter {
  path: AttributePath;
  op: FilterOp;
  /**
   * Values that `in` and `not_in` compare with; other operators take one. `exists` takes true or
   * false.
   */
  values: readonly FilterValue[];
}

/** Element of the list `attributes` of conditions.sql. */
export interface AttributeCondition extends Record<string, unknown> {
  negated?: true;
  needles: string[];
  /** The key of a path that has one form of one key; other paths have `keys`. */
  key?: string;
  keys?: string[][];
  /** Exactly one of `any_value`, `texts`, `number` and `text` is set; it says how values are compared. */
  any_value?: true;
  /** Values that are equal as texts. */
  texts?: string[];
  /** Values that are equal as numbers, beside `texts`. */
  numbers?: number[];
  /** Results that the comparison with `number` or `text` may have. */
  signs?: number[];
  number?: number;
  text?: string;
}

/**
 * Parses `attributes.<path>`. A dot separates keys or is part of a key: `a.b.c` names the field
 * "a.b.c", the field "b.c" of "a", and the field "c" of "b" of "a".
 * @returns the path, or the reason why the field is none, without the field's name
 */
export function parseAttributePath(field: string): { ok: true; path: AttributePath } | { ok: false; message: string } {
  const names = field.slice(ATTRIBUTE_PREFIX.length).split('.');
  if (!field.startsWith(ATTRIBUTE_PREFIX) || names.includes(''))
    return { ok: false, message: 'must be attributes. and a path, such as attributes.region' };
  if (field.length > PATH_LENGTH_MAX || names.length > PATH_KEYS_MAX)
    return { ok: false, message: `must have at most ${PATH_KEYS_MAX} keys and ${PATH_LENGTH_MAX} characters` };
  return { ok: true, path: names.map((_, nested) => [...names.slice(0, nested), names.slice(nested).join('.')]) };
}

/** Values that the comparison of two values may have: less (-1), equal (0), greater (1). */
const SIGNS: Partial<Record<FilterOp, number[]>> = { gt: [1], gte: [0, 1], lt: [-1], lte: [-1, 0] };

/**
 * Returns the conditions of filters. Numbers are compared as numbers, also with digits in a text;
 * every other value as text. `ne` and `not_in` also hold for spans without the field.
 */
export function attributeConditions(filters: readonly AttributeFilter[]): AttributeCondition[] {
  return filters.map(({ path, op, values }) => {
    const [first] = values;
    const isNegated = op === 'ne' || op === 'not_in' || (op === 'exists' && first === false);
    const base: AttributeCondition = {
      ...(isNegated ? { negated: true } : {}),
      needles: needlesOf(path),
      ...keysOf(path),
    };
    if (op === 'exists') return { ...base, any_value: true };
    const signs = SIGNS[op];
    if (signs !== undefined)
      return { ...base, signs, ...(typeof first === 'number' ? { number: first } : { text: String(first) }) };
    const numbers = values.filter((value) => typeof value === 'number');
    return {
      ...base,
      needles: valueNeedlesOf(path, values) ?? base.needles,
      texts: [...new Set(values.map(String))],
      ...(numbers.length === 0 ? {} : { numbers }),
    };
  });
}

function keysOf(path: AttributePath): Pick<AttributeCondition, 'key' | 'keys'> {
  const [only] = path;
  if (path.length === 1 && only?.length === 1) return { key: only[0] ?? '' };
  return { keys: path.map((keys) => [...keys]) };
}

/**
 * Returns texts one of which every matching JSON text contains. The empty text, which all contain,
 * stands for keys that a writer of JSON may escape.
 */
function needlesOf(path: AttributePath): string[] {
  const last = path.map((keys) => keys.at(-1) ?? '');
  return last.every((key) => PLAIN.test(key)) ? last.map((key) => `"${key}"`) : [''];
}

/**
 * Returns texts one of which a JSON text contains if a field has one of the values; null where no
 * short list does. They are the key with the beginning of a value, so that few texts are parsed.
 */
function valueNeedlesOf(path: AttributePath, values: readonly FilterValue[]): string[] | null {
  const keys = path.map((names) => names.at(-1) ?? '');
  if (![...keys, ...values.map(String)].every((text) => PLAIN.test(text))) return null;
  const begins = [...new Set(values.flatMap(beginsOf))];
  const needles = keys.flatMap((key) => [
    ...begins.map((begin) => `"${key}":${begin}`),
    // The pipeline writes no spaces around the colon; what others wrote is parsed.
    ...JSON_SPACES.flatMap((space) => [`"${key}"${space}`, `"${key}":${space}`]),
  ]);
  return needles.length > NEEDLES_MAX ? null : needles;
}

/**
 * Returns the beginnings of the JSON texts of a value. A number equals texts with other digits (5,
 * 5.0, 50e-1, 0.5e1), which begin with its first digit or 0, and strings of digits.
 */
function beginsOf(value: FilterValue): string[] {
  if (typeof value !== 'number') return [`"${value}`, `${value}`];
  const digit = /[1-9]/.exec(value.toExponential())?.[0];
  if (digit === undefined) return ['0', '-', '"'];
  return value < 0 ? ['-', '"'] : ['0', digit, '"'];
}
