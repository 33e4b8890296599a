// JSON schemas of judges: compiled once, bounded in size, and safe against texts and schemas that
// organizations send. Patterns run on the linear engine. Keywords whose time grows faster than the
// text (uniqueItems) or without end (references) are rejected. In: a schema (draft 2020-12, or
// draft-07 where $schema says so). Out: a check of a parsed value, or a SchemaError.
import { Ajv, type Options } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { compileLinear, PatternError } from '../patterns/linear_regex.ts';

/** Maximum characters of a schema as JSON. */
export const SCHEMA_CHARS_MAX = 16_384;
/** Maximum objects and arrays in a schema: each costs at most one check of each value. */
const SCHEMA_NODES_MAX = 500;
const SCHEMA_DEPTH_MAX = 20;
/**
 * Maximum instructions of all patterns of a schema together: a text is matched against every one.
 */
const SCHEMA_PROGRAM_MAX = 250;
/** Maximum characters of a checked JSON text; a longer one fails. */
export const CHECKED_CHARS_MAX = 262_144;

type RegExpEngine = NonNullable<NonNullable<Options['code']>['regExp']>;

const DRAFT_7 = /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/;
const DRAFT_2020 = 'https://json-schema.org/draft/2020-12/schema';

export class SchemaError extends Error {}

/** Returns null when the value satisfies the schema, else the first violation in short. */
export type SchemaCheck = (value: unknown) => string | null;

/**
 * Rejected keywords: references may form cycles, and one schema may include another many times
 * over.
 */
const REFUSED = new Set([
  '$ref',
  '$dynamicRef',
  '$recursiveRef',
  '$dynamicAnchor',
  '$async',
  'uniqueItems',
  'unevaluatedProperties',
  'unevaluatedItems',
]);
/** Keywords whose contents are values or names, not keywords. */
const HOLDS_VALUES = new Set(['const', 'enum', 'default', 'examples']);
const HOLDS_NAMED = new Set([
  'properties',
  'patternProperties',
  '$defs',
  'definitions',
  'dependentSchemas',
  'dependencies',
]);

export interface CompiledSchema {
  check: SchemaCheck;
  /**
   * Maximum steps for each character of a JSON text: each value may meet each part of the schema,
   * each text each pattern.
   */
  weight: number;
}

/** Characters of a schema that are checked in about one step. */
const SCHEMA_CHARS_A_STEP = 32;

/**
 * Compiles a schema.
 * @throws SchemaError when the schema is invalid or exceeds a bound
 */
export function compileSchema(schema: unknown): CompiledSchema {
  if (typeof schema === 'boolean') return { check: () => (schema ? null : 'nothing is allowed'), weight: 0 };
  if (typeof schema !== 'object' || schema === null || Array.isArray(schema))
    throw new SchemaError('must be a JSON schema: an object');
  const { length } = JSON.stringify(schema);
  if (length > SCHEMA_CHARS_MAX)
    throw new SchemaError(`must be a JSON schema of at most ${SCHEMA_CHARS_MAX} characters`);
  checkNodes(schema as Record<string, unknown>);
  const ajv = dialectOf(schema);
  // An id would only serve references, which are rejected.
  const own = Object.fromEntries(Object.entries(schema).filter(([key]) => key !== '$schema' && key !== '$id'));
  try {
    const wrong = problemOf(ajv, own);
    if (wrong !== null) throw new SchemaError(`must be a JSON schema: ${wrong}`);
    // The meta-schema has validated the schema already, and is compiled once.
    const patterns = { size: 0, count: 0 };
    const check = new ajv({
      ...OPTIONS,
      meta: false,
      validateSchema: false,
      code: { regExp: linearRegExp(patterns) },
    }).compile(own);
    return {
      check: (value) => (check(value) ? null : saidOf(check.errors)),
      weight:
        Math.ceil(length / SCHEMA_CHARS_A_STEP) + Math.min(3 * patterns.size, patterns.size + 48 * patterns.count),
    };
  } catch (error) {
    if (error instanceof SchemaError) throw error;
    if (error instanceof PatternError) throw new SchemaError(`pattern: ${error.message}`);
    throw new SchemaError(error instanceof Error ? error.message : String(error));
  }
}

const OPTIONS: Options = {
  // Unknown keywords are annotations, and so are formats, as the standard says.
  strict: false,
  validateFormats: false,
  addUsedSchema: false,
  logger: false,
};

type Dialect = typeof Ajv | typeof Ajv2020;
const validators = new Map<Dialect, Pick<Ajv, 'validateSchema' | 'errors'>>();

function dialectOf(schema: object): Dialect {
  const named = '$schema' in schema ? schema.$schema : DRAFT_2020;
  if (named === DRAFT_2020 || named === `${DRAFT_2020}#`) return Ajv2020;
  if (typeof named === 'string' && DRAFT_7.test(named)) return Ajv;
  throw new SchemaError('$schema: must be draft 2020-12 or draft-07');
}

/** Returns what the meta-schema finds wrong with a schema; null when it is valid. */
function problemOf(dialect: Dialect, schema: object): string | null {
  const ajv = validators.get(dialect) ?? new dialect(OPTIONS);
  validators.set(dialect, ajv);
  return ajv.validateSchema(schema) === true ? null : saidOf(ajv.errors);
}

function saidOf(errors: Ajv['errors']): string {
  const [error] = errors ?? [];
  if (error === undefined) return 'it is not valid';
  return `${error.instancePath === '' ? 'the value' : error.instancePath} ${error.message ?? 'is not valid'}`;
}

/** A pattern with its text, by which ajv distinguishes patterns. */
class NamedPattern {
  readonly test: (text: string) => boolean;
  readonly #pattern: string;

  constructor(pattern: string, test: (text: string) => boolean) {
    this.#pattern = pattern;
    this.test = test;
  }

  toString(): string {
    return this.#pattern;
  }
}

/** Returns the factory that ajv calls in place of RegExp. */
function linearRegExp(patterns: { size: number; count: number }): RegExpEngine {
  const make = (pattern: string): { test: (text: string) => boolean } => {
    const compiled = compileLinear(pattern);
    patterns.size += compiled.size;
    patterns.count += 1;
    if (patterns.size > SCHEMA_PROGRAM_MAX)
      throw new SchemaError(
        `the patterns of the schema have more than ${SCHEMA_PROGRAM_MAX} instructions together. Use smaller counts in {}, + or *, or fewer patterns`,
      );
    return new NamedPattern(pattern, compiled.test);
  };
  return Object.assign(make, { code: 'linear' });
}

function checkNodes(schema: Record<string, unknown>): void {
  let nodes = 0;
  const visit = (value: unknown, depth: number, holds: 'keywords' | 'named' | 'values'): void => {
    if (typeof value !== 'object' || value === null) return;
    nodes += 1;
    if (nodes > SCHEMA_NODES_MAX)
      throw new SchemaError(`must be a JSON schema of at most ${SCHEMA_NODES_MAX} objects and lists`);
    if (depth > SCHEMA_DEPTH_MAX) throw new SchemaError(`must be a JSON schema of at most ${SCHEMA_DEPTH_MAX} levels`);
    for (const [key, inner] of Object.entries(value)) {
      if (holds === 'keywords' && !Array.isArray(value)) {
        if (REFUSED.has(key) && inner !== false) throw new SchemaError(`${key} is not taken in the schema of a judge`);
        visit(inner, depth + 1, HOLDS_VALUES.has(key) ? 'values' : HOLDS_NAMED.has(key) ? 'named' : 'keywords');
      } else visit(inner, depth + 1, holds === 'values' ? 'values' : 'keywords');
    }
  };
  visit(schema, 1, 'keywords');
}
