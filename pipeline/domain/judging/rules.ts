// Deterministic judges: a rule over a trace, compiled once for each version of a judge. Pure and
// total: for any rule and trace a scorer returns 1 or 0 with a short reason, in time linear in the
// trace. In: the rule of a judge's record. Out: a scorer, or a RuleError that names the invalid
// parameter.
import type { JudgeRule, JudgeScope, RuleType } from '../../../schemas/records/judge.ts';
import { containing } from '../text/contains.ts';
import { fieldOf, type FieldReader } from './fields.ts';
import { CHECKED_CHARS_MAX, type CompiledSchema, compileSchema, SchemaError } from './json_schema.ts';
import type { JudgedTrace } from './judged_trace.ts';
import { compileLinear, PatternError, testSteps } from '../patterns/linear_regex.ts';

export interface RuleScore {
  score: 0 | 1;
  reason: string;
}

/**
 * Scores a trace. Its parts let the caller pay for a rule before it runs, and run it in another
 * thread.
 */
export interface RuleScorer {
  (trace: JudgedTrace): RuleScore;
  /**
   * Returns the texts that the rule reads, in the order of its fields; none for a rule that reads
   * no text.
   */
  readonly texts: (trace: JudgedTrace) => readonly string[];
  /** Returns the rule's maximum steps on these texts; see linear_regex.ts. */
  readonly steps: (texts: readonly string[]) => number;
  /** Scores the texts alone. @throws Error for a rule that reads no text */
  readonly ofTexts: (texts: readonly string[]) => RuleScore;
}

/** `parameter` is the rule's invalid field: pattern, schema, fields. */
export class RuleError extends Error {
  readonly parameter: string;

  constructor(parameter: string, message: string) {
    super(message);
    this.parameter = parameter;
  }
}

/** The parameter that each type requires; null for none. */
export const PARAMETER_OF = {
  regex_absent: 'pattern',
  regex_present: 'pattern',
  contains: 'value',
  not_contains: 'value',
  equals: 'value',
  json_valid: null,
  json_schema: 'schema',
  max_length: 'max',
  max_duration_ms: 'max',
  max_cost_usd: 'max',
  outcome_is: 'outcomes',
} as const satisfies Record<RuleType, keyof JudgeRule | null>;

/** Types that read the fields in `fields`; the others have a field of their own. */
export const READS_FIELDS: ReadonlySet<RuleType> = new Set([
  'regex_absent',
  'regex_present',
  'contains',
  'not_contains',
  'equals',
  'json_valid',
  'json_schema',
  'max_length',
]);

const REASON_CHARS_MAX = 200;
const PASSED = { score: 1, reason: '' } as const;
const failed = (reason: string): RuleScore => ({ score: 0, reason: reason.slice(0, REASON_CHARS_MAX).toWellFormed() });

/** The cost and the scoring of a rule on the texts of its fields. */
interface TextRule {
  steps: (text: string) => number;
  ofTexts: (texts: readonly string[]) => RuleScore;
}

/** Steps for each character of parsing JSON. */
const JSON_STEPS = 4;

/** Passes when every field passes; the reason names the first that fails. */
function every(fields: readonly FieldReader[], problem: (text: string) => string | null): TextRule['ofTexts'] {
  return (texts) => {
    for (const [index, field] of fields.entries()) {
      const said = problem(texts[index] ?? '');
      if (said !== null) return failed(`${field.name} ${said}`);
    }
    return PASSED;
  };
}

/** Passes when one field passes. */
function some(
  fields: readonly FieldReader[],
  holds: (text: string) => boolean,
  otherwise: string,
): TextRule['ofTexts'] {
  const names = fields.map(({ name }) => name).join(', ');
  const miss = failed(`${otherwise} ${names}`);
  return (texts) => (texts.some(holds) ? PASSED : miss);
}

function onTexts(fields: readonly FieldReader[], { steps, ofTexts }: TextRule): RuleScorer {
  const texts = (trace: JudgedTrace): string[] => fields.map((field) => field.text(trace));
  return Object.assign((trace: JudgedTrace) => ofTexts(texts(trace)), {
    texts,
    steps: (given: readonly string[]) => given.reduce((sum, text) => sum + steps(text), 0),
    ofTexts,
  });
}

const onTrace = (score: (trace: JudgedTrace) => RuleScore): RuleScorer =>
  Object.assign((trace: JudgedTrace) => score(trace), {
    texts: () => [],
    steps: () => 0,
    ofTexts: () => {
      throw new Error('the rule looks at no text');
    },
  });

function jsonOf(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return null;
  }
}

function patternOf(rule: JudgeRule): { test: (text: string) => boolean; steps: (text: string) => number } {
  try {
    const { test, size } = compileLinear(rule.pattern ?? '');
    return { test, steps: (text) => testSteps(size, text.length) };
  } catch (error) {
    if (error instanceof PatternError) throw new RuleError('pattern', error.message);
    throw error;
  }
}

function schemaOf(rule: JudgeRule): CompiledSchema {
  try {
    return compileSchema(rule.schema);
  } catch (error) {
    if (error instanceof SchemaError) throw new RuleError('schema', error.message);
    throw error;
  }
}

/** Returns the number of characters as people count them: code points. */
function characters(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count -= 1;
  }
  return count;
}

/**
 * Avoids counting: a text has at most as many code points as UTF-16 units, and at least half as
 * many.
 */
function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false;
  return text.length > 2 * max || characters(text) > max;
}

/** @throws RuleError for an unknown field */
function fieldsOf(rule: JudgeRule): FieldReader[] {
  return rule.fields.map((name) => {
    const reader = fieldOf(name);
    if (reader === null) throw new RuleError('fields', `${JSON.stringify(name.slice(0, 64))} is no field of a trace`);
    return reader;
  });
}

/**
 * Returns the texts that a rule reads, without compiling it. @throws RuleError for an unknown field
 */
export const textsOfRule = (rule: JudgeRule, trace: JudgedTrace): string[] =>
  fieldsOf(rule).map((field) => field.text(trace));

/**
 * Compiles a rule into a scorer. With several fields, regex_absent, not_contains, json_valid,
 * json_schema and max_length must hold for all of them; regex_present, contains and equals for any
 * one. A field that a trace lacks is an empty text.
 * @throws RuleError
 */
export function compileRule(rule: JudgeRule): RuleScorer {
  const fields = fieldsOf(rule);
  const { value = '', max = 0, outcomes = [] } = rule;
  const contains = containing(value);
  const charSteps = ({ length }: string): number => length;
  switch (rule.type) {
    case 'regex_absent': {
      const { test, steps } = patternOf(rule);
      return onTexts(fields, { steps, ofTexts: every(fields, (text) => (test(text) ? 'matches the pattern' : null)) });
    }
    case 'regex_present': {
      const { test, steps } = patternOf(rule);
      return onTexts(fields, { steps, ofTexts: some(fields, test, 'the pattern does not match in') });
    }
    case 'contains':
      return onTexts(fields, { steps: charSteps, ofTexts: some(fields, contains, 'the value is not in') });
    case 'not_contains':
      return onTexts(fields, {
        steps: charSteps,
        ofTexts: every(fields, (text) => (contains(text) ? 'contains the value' : null)),
      });
    case 'equals':
      return onTexts(fields, {
        steps: () => 1,
        ofTexts: some(fields, (text) => text === value, 'the value is not that of'),
      });
    case 'json_valid':
      return onTexts(fields, {
        steps: ({ length }) => length * JSON_STEPS,
        ofTexts: every(fields, (text) => (jsonOf(text) === null ? 'is no JSON' : null)),
      });
    case 'json_schema': {
      const { check, weight } = schemaOf(rule);
      return onTexts(fields, {
        steps: ({ length }) => (length > CHECKED_CHARS_MAX ? 1 : (length + 1) * (JSON_STEPS + weight)),
        ofTexts: every(fields, (text) => {
          if (text.length > CHECKED_CHARS_MAX)
            return `has more than the ${CHECKED_CHARS_MAX} characters that a schema is checked on`;
          const json = jsonOf(text);
          return json === null ? 'is no JSON' : check(json.value);
        }),
      });
    }
    case 'max_length':
      return onTexts(fields, {
        steps: charSteps,
        ofTexts: every(fields, (text) => (isLonger(text, max) ? `has more than ${max} characters` : null)),
      });
    case 'max_duration_ms':
      return onTrace(({ duration_ms }) =>
        duration_ms <= max ? PASSED : failed(`it took ${duration_ms} ms, more than ${max}`),
      );
    case 'max_cost_usd':
      return onTrace(({ cost_usd }) =>
        cost_usd <= max ? PASSED : failed(`it cost ${cost_usd} USD, more than ${max}`),
      );
    case 'outcome_is': {
      const wanted = new Set<string>(outcomes);
      return onTrace(({ outcome }) => (wanted.has(outcome) ? PASSED : failed(`the outcome is ${outcome}`)));
    }
  }
}

/** Returns true when a rule reads what is stored with full events only: texts and attributes. */
export function readsTexts(rule: JudgeRule): boolean {
  return READS_FIELDS.has(rule.type) && rule.fields.some((name) => fieldOf(name)?.is_text !== false);
}

/**
 * Returns true when a judge of this scope judges the trace: each given list must contain the
 * trace's value; for tags, any one.
 */
export function inScope(scope: JudgeScope, trace: Pick<JudgedTrace, 'source_format' | 'agent_id' | 'tags'>): boolean {
  const { source_format = [], agent_id = [], tags = [] } = scope;
  return (
    (source_format.length === 0 || source_format.includes(trace.source_format)) &&
    (agent_id.length === 0 || agent_id.includes(trace.agent_id)) &&
    (tags.length === 0 || tags.some((tag) => trace.tags.includes(tag)))
  );
}
