// Deterministic judges: a rule over a trace, compiled once for each version of a judge. Pure and total: whatever the rule and the
// trace are, a scorer answers 1 or 0 with a short reason, and its time is linear in the trace.
// In: the rule of a judge's record. Out: a scorer, or a RuleError that names the parameter that cannot be used.
import type { JudgeRule, JudgeScope, RuleType } from '../../schemas/records/judge.ts';
import { fieldOf, type FieldReader } from './judge_fields.ts';
import { CHECKED_CHARS_MAX, compileSchema, SchemaError, type SchemaCheck } from './judge_schema.ts';
import type { JudgedTrace } from './judged_trace.ts';
import { compileLinear, PatternError } from './linear_regex.ts';

export interface RuleScore {
  score: 0 | 1;
  reason: string;
}

export type RuleScorer = (trace: JudgedTrace) => RuleScore;

/** `parameter` is the rule's field that is to blame: pattern, schema, fields. */
export class RuleError extends Error {
  readonly parameter: string;

  constructor(parameter: string, message: string) {
    super(message);
    this.parameter = parameter;
  }
}

/** The parameter that each type needs; null for none. */
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

/** Types that look at what `fields` names; the others have a field of their own. */
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

/** Passes when every field does; the reason names the first that does not. */
function every(fields: readonly FieldReader[], problem: (text: string) => string | null): RuleScorer {
  return (trace) => {
    for (const field of fields) {
      const said = problem(field.text(trace));
      if (said !== null) return failed(`${field.name} ${said}`);
    }
    return PASSED;
  };
}

/** Passes when one field does. */
function some(fields: readonly FieldReader[], holds: (text: string) => boolean, otherwise: string): RuleScorer {
  const names = fields.map(({ name }) => name).join(', ');
  const miss = failed(`${otherwise} ${names}`);
  return (trace) => (fields.some((field) => holds(field.text(trace))) ? PASSED : miss);
}

function jsonOf(text: string): { value: unknown } | null {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return null;
  }
}

function patternOf(rule: JudgeRule): (text: string) => boolean {
  try {
    const { test } = compileLinear(rule.pattern ?? '');
    return test;
  } catch (error) {
    if (error instanceof PatternError) throw new RuleError('pattern', error.message);
    throw error;
  }
}

function schemaOf(rule: JudgeRule): SchemaCheck {
  try {
    return compileSchema(rule.schema);
  } catch (error) {
    if (error instanceof SchemaError) throw new RuleError('schema', error.message);
    throw error;
  }
}

/** Characters of a text as people count them: code points. */
function characters(text: string): number {
  let count = text.length;
  for (let at = 0; at < text.length - 1; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit <= 0xdbff && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count -= 1;
  }
  return count;
}

/** A text has at most as many characters as UTF-16 units, and at least half as many. */
function isLonger(text: string, max: number): boolean {
  if (text.length <= max) return false;
  return text.length > 2 * max || characters(text) > max;
}

/**
 * The scorer of a rule.
 * Of several fields, regex_absent, not_contains, json_valid, json_schema and max_length must hold for all of them, regex_present, contains and
 * equals for any of them. A field that a trace does not have is an empty text.
 * @throws RuleError
 */
export function compileRule(rule: JudgeRule): RuleScorer {
  const fields = rule.fields.map((name) => {
    const reader = fieldOf(name);
    if (reader === null) throw new RuleError('fields', `${JSON.stringify(name.slice(0, 64))} is no field of a trace`);
    return reader;
  });
  const { value = '', max = 0, outcomes = [] } = rule;
  switch (rule.type) {
    case 'regex_absent': {
      const test = patternOf(rule);
      return every(fields, (text) => (test(text) ? 'matches the pattern' : null));
    }
    case 'regex_present':
      return some(fields, patternOf(rule), 'the pattern does not match in');
    case 'contains':
      return some(fields, (text) => text.includes(value), 'the value is not in');
    case 'not_contains':
      return every(fields, (text) => (text.includes(value) ? 'contains the value' : null));
    case 'equals':
      return some(fields, (text) => text === value, 'the value is not that of');
    case 'json_valid':
      return every(fields, (text) => (jsonOf(text) === null ? 'is no JSON' : null));
    case 'json_schema': {
      const check = schemaOf(rule);
      return every(fields, (text) => {
        if (text.length > CHECKED_CHARS_MAX) return `has more than the ${String(CHECKED_CHARS_MAX)} characters that a schema is checked on`;
        const json = jsonOf(text);
        return json === null ? 'is no JSON' : check(json.value);
      });
    }
    case 'max_length':
      return every(fields, (text) => (isLonger(text, max) ? `has more than ${String(max)} characters` : null));
    case 'max_duration_ms':
      return ({ duration_ms }) => (duration_ms <= max ? PASSED : failed(`it took ${String(duration_ms)} ms, more than ${String(max)}`));
    case 'max_cost_usd':
      return ({ cost_usd }) => (cost_usd <= max ? PASSED : failed(`it cost ${String(cost_usd)} USD, more than ${String(max)}`));
    case 'outcome_is': {
      const wanted = new Set<string>(outcomes);
      return ({ outcome }) => (wanted.has(outcome) ? PASSED : failed(`the outcome is ${outcome}`));
    }
  }
}

/** Whether a rule looks at what is stored with full events only: texts and attributes. */
export function readsTexts(rule: JudgeRule): boolean {
  return READS_FIELDS.has(rule.type) && rule.fields.some((name) => fieldOf(name)?.is_text !== false);
}

/** Whether a judge of this scope judges a trace: each list that is given has to have the trace's; tags, any of them. */
export function inScope(scope: JudgeScope, trace: Pick<JudgedTrace, 'source_format' | 'agent_id' | 'tags'>): boolean {
  const { source_format = [], agent_id = [], tags = [] } = scope;
  return (
    (source_format.length === 0 || source_format.includes(trace.source_format)) &&
    (agent_id.length === 0 || agent_id.includes(trace.agent_id)) &&
    (tags.length === 0 || tags.some((tag) => trace.tags.includes(tag)))
  );
}
