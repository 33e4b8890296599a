// Deterministic judges: every type of rule on every field, scopes, and hostile rules and texts.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compileRule, inScope, readsTexts, RuleError } from '../../../pipeline/domain/judging/rules.ts';
import type { JudgedTrace } from '../../../pipeline/domain/judging/judged_trace.ts';
import { breachOf, RULE_TYPES, type JudgeRule, verdictOf } from '../../../schemas/records/judge.ts';

const trace = (over: Partial<JudgedTrace> = {}): JudgedTrace => ({
  org_id: 'org_a',
  trace_id: 'trc_1',
  agent_id: 'booker',
  name: 'book a flight',
  model: 'gpt-4o',
  outcome: 'success',
  source_format: 'custom',
  tags: ['prod', 'eu'],
  started_at: 0,
  duration_ms: 1500,
  input_tokens: 10,
  output_tokens: 5,
  cost_usd: 0.25,
  prompt: 'Where to?',
  response: 'To Rome.',
  attributes: { region: 'eu', 'dotted.key': 'flat', dotted: { key: 'nested', list: [1, { a: null }] }, empty: null },
  ...over,
});
const rule = (type: JudgeRule['type'], more: Partial<JudgeRule> = {}): JudgeRule => ({
  type,
  fields: ['response'],
  ...more,
});
const score = (given: JudgeRule, over: Partial<JudgedTrace> = {}): number => compileRule(given)(trace(over)).score;

/** Each field with its text in the trace above. */
const FIELDS: [string, string][] = [
  ['prompt', 'Where to?'],
  ['response', 'To Rome.'],
  ['name', 'book a flight'],
  ['model', 'gpt-4o'],
  ['outcome', 'success'],
  ['agent_id', 'booker'],
  ['source_format', 'custom'],
  ['tags', 'prod\neu'],
  ['duration_ms', '1500'],
  ['cost_usd', '0.25'],
  ['attributes.region', 'eu'],
  ['attributes.dotted.key', 'flat'],
  ['attributes.dotted.list', '[1,{"a":null}]'],
  ['attributes.dotted.list.0', '1'],
  ['attributes.empty', ''],
  ['attributes.missing', ''],
  ['attributes.toString', ''],
  ['attributes.region.length', ''],
];

describe.each(FIELDS)('the field %s', (field, text) => {
  const of = (type: JudgeRule['type'], more: Partial<JudgeRule>): number =>
    score(rule(type, { fields: [field], ...more }));
  const escaped = text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

  it('every type of rule that reads fields can read the field %s', () => {
    expect(of('equals', { value: text })).toBe(1);
    expect(of('equals', { value: `${text}!` })).toBe(0);
    expect(of('contains', { value: text.slice(1, 4) })).toBe(1);
    expect(of('contains', { value: 'zebra' })).toBe(0);
    expect(of('not_contains', { value: 'zebra' })).toBe(1);
    if (text !== '') expect(of('not_contains', { value: text.slice(0, 2) })).toBe(0);
    expect(of('regex_present', { pattern: `^${escaped}$` })).toBe(1);
    expect(of('regex_present', { pattern: 'zebra' })).toBe(0);
    expect(of('regex_absent', { pattern: `^${escaped}$` })).toBe(0);
    expect(of('regex_absent', { pattern: 'zebra' })).toBe(1);
    expect(of('max_length', { max: text.length })).toBe(1);
    if (text !== '') expect(of('max_length', { max: text.length - 1 })).toBe(0);
    const json = /^[\d.]+$/.test(text) || text.startsWith('[') ? 1 : 0;
    expect(of('json_valid', {})).toBe(json);
    expect(of('json_schema', { schema: {} })).toBe(json);
    expect(of('json_schema', { schema: false })).toBe(0);
  });
});

describe('a rule', () => {
  it('a rule over several fields must hold for all of them where it forbids, for one where it requires', () => {
    const both = ['prompt', 'response'];
    expect(score(rule('regex_absent', { fields: both, pattern: 'Rome' }))).toBe(0);
    expect(score(rule('not_contains', { fields: both, value: 'Where' }))).toBe(0);
    expect(score(rule('regex_present', { fields: both, pattern: 'Rome' }))).toBe(1);
    expect(score(rule('contains', { fields: both, value: 'Where' }))).toBe(1);
    expect(score(rule('equals', { fields: both, value: 'To Rome.' }))).toBe(1);
    expect(score(rule('json_valid', { fields: both }), { prompt: '{}' })).toBe(0);
    expect(score(rule('max_length', { fields: both, max: 8 }))).toBe(0);
  });

  it('a rule says briefly why it fails, and nothing where it passes', () => {
    const reason = (given: JudgeRule): string => compileRule(given)(trace()).reason;
    expect(reason(rule('regex_absent', { pattern: 'Rome' }))).toBe('response matches the pattern');
    expect(reason(rule('contains', { fields: ['prompt', 'name'], value: 'x1' }))).toBe(
      'the value is not in prompt, name',
    );
    expect(reason(rule('max_duration_ms', { max: 1 }))).toBe('it took 1500 ms, more than 1');
    expect(reason(rule('contains', { value: 'Rome' }))).toBe('');
    expect(
      reason(rule('not_contains', { fields: [`attributes.${'x'.repeat(400)}`, 'response'], value: '' })).length,
    ).toBeLessThanOrEqual(200);
  });

  it("a rule bounds a trace's duration, cost and outcome", () => {
    expect(score(rule('max_duration_ms', { max: 1500 }))).toBe(1);
    expect(score(rule('max_duration_ms', { max: 1499 }))).toBe(0);
    expect(score(rule('max_cost_usd', { max: 0.25 }))).toBe(1);
    expect(score(rule('max_cost_usd', { max: 0.2 }))).toBe(0);
    expect(score(rule('outcome_is', { outcomes: ['success', 'timeout'] }))).toBe(1);
    expect(score(rule('outcome_is', { outcomes: ['success'] }), { outcome: 'error' })).toBe(0);
  });

  it('a rule counts characters, not units of their encoding', () => {
    expect(score(rule('max_length', { max: 3 }), { response: '😀😀😀' })).toBe(1);
    expect(score(rule('max_length', { max: 2 }), { response: '😀😀😀' })).toBe(0);
    expect(score(rule('max_length', { max: 2 }), { response: '\ud83d\ud83d' })).toBe(1);
  });

  it('a rule validates JSON by a schema of either draft', () => {
    const schema = {
      type: 'object',
      required: ['city'],
      properties: { city: { type: 'string', pattern: '^[A-Z]' } },
      additionalProperties: false,
    };
    const of = (response: string, given: unknown = schema): number =>
      score(rule('json_schema', { schema: given }), { response });
    expect(of('{"city":"Rome"}')).toBe(1);
    expect(of('{"city":"rome"}')).toBe(0);
    expect(of('{"city":"Rome","x":1}')).toBe(0);
    expect(of('{"city":')).toBe(0);
    expect(of('[1]', { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'number' }] })).toBe(1);
    expect(of('["a"]', { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'number' }] })).toBe(0);
    expect(of('["a"]', { prefixItems: [{ type: 'number' }] })).toBe(0);
  });

  it.each<[string, Partial<JudgeRule>]>([
    ['pattern', { type: 'regex_absent', pattern: '(?!a)' }],
    ['pattern', { type: 'regex_present', pattern: '(' }],
    ['schema', { type: 'json_schema', schema: { type: 'strange' } }],
    ['schema', { type: 'json_schema', schema: { properties: { a: { $ref: '#' } } } }],
    ['schema', { type: 'json_schema', schema: { items: { uniqueItems: true } } }],
    ['schema', { type: 'json_schema', schema: { pattern: '(?=a)' } }],
    ['schema', { type: 'json_schema', schema: { description: 'x'.repeat(20_000) } }],
    ['schema', { type: 'json_schema', schema: { enum: Array.from({ length: 600 }, () => []) } }],
    ['schema', { type: 'json_schema', schema: { $schema: 'https://example.com/own' } }],
    ['schema', { type: 'json_schema', schema: 'text' }],
    ['fields', { type: 'json_valid', fields: ['answer'] }],
    ['fields', { type: 'json_valid', fields: ['attributes.'] }],
    ['fields', { type: 'json_valid', fields: ['toString'] }],
  ])('an invalid rule names its %s', (parameter, given) => {
    const thrown = (): unknown => {
      try {
        compileRule({ ...rule('json_valid'), ...given });
        return null;
      } catch (error) {
        return error;
      }
    };
    expect(thrown()).toBeInstanceOf(RuleError);
    expect((thrown() as RuleError).parameter).toBe(parameter);
  });

  it('a rule finishes with hostile patterns and schemas on large texts', () => {
    const long = `${'a'.repeat(1_000_000)}!`;
    expect(score(rule('regex_present', { pattern: '(a+)+$' }), { response: long })).toBe(0);
    expect(score(rule('regex_absent', { pattern: '[ab]*a[ab]{400}[cd]' }), { response: long })).toBe(1);
    const nested = { type: 'string', pattern: '^(a+)+$' };
    expect(
      score(rule('json_schema', { schema: { items: { anyOf: [nested, { ...nested, minLength: 2 }] } } }), {
        response: JSON.stringify([long.slice(-200_000)]),
      }),
    ).toBe(0);
    expect(score(rule('json_schema', { schema: {} }), { response: JSON.stringify(long) })).toBe(0);
    expect(score(rule('json_valid'), { response: '['.repeat(500_000) })).toBe(0);
  });

  it('a rule gives 0 or 1 to any trace', () => {
    const text = fc.oneof(
      fc.string({
        unit: fc.constantFrom('a', 'b', '{', '}', '[', ']', '"', ':', '1', '\n', '\0', 'é', '😀', '\ud800'),
        maxLength: 20,
      }),
      fc.json({ maxDepth: 1 }),
    );
    const parameters = {
      pattern: '(a|b)+c?',
      value: 'a',
      schema: { type: ['object', 'array'] },
      max: 3,
      outcomes: ['error'],
    };
    const scorers = RULE_TYPES.map((type) =>
      compileRule({ ...rule(type, parameters), fields: ['prompt', 'response', 'attributes.a'] }),
    );
    fc.assert(
      fc.property(text, text, fc.record({ a: fc.jsonValue({ maxDepth: 1 }) }), (prompt, response, attributes) => {
        for (const scorer of scorers) expect([0, 1]).toContain(scorer(trace({ prompt, response, attributes })).score);
      }),
    );
  });

  it('a rule reads texts, or what every trace has', () => {
    expect(readsTexts(rule('contains', { fields: ['name', 'attributes.x'] }))).toBe(true);
    expect(readsTexts(rule('contains', { fields: ['name', 'tags'] }))).toBe(false);
    expect(readsTexts(rule('max_cost_usd'))).toBe(false);
  });
});

it('a scope matches a trace that is in each of its lists, by any of its tags', () => {
  expect(inScope({}, trace())).toBe(true);
  expect(inScope({ source_format: [], tags: [] }, trace())).toBe(true);
  expect(inScope({ source_format: ['messages', 'custom'] }, trace())).toBe(true);
  expect(inScope({ source_format: ['messages'] }, trace())).toBe(false);
  expect(inScope({ tags: ['eu', 'us'], agent_id: ['booker'] }, trace())).toBe(true);
  expect(inScope({ tags: ['us'], agent_id: ['booker'] }, trace())).toBe(false);
  expect(inScope({ agent_id: ['booker'] }, trace({ agent_id: '' }))).toBe(false);
});

it('a verdict and a breach follow from the threshold', () => {
  const threshold = { pass: 4, warn: 3 };
  expect([5, 4, 3.5, 3, 2.9].map((value) => verdictOf(value, threshold))).toEqual([
    'pass',
    'pass',
    'warn',
    'warn',
    'fail',
  ]);
  expect(breachOf({ judge_id: 'judge_1', threshold }, 'trc_1', 3)).toBeNull();
  expect(breachOf({ judge_id: 'judge_1', threshold }, 'trc_1', 2)).toEqual({
    event: 'judge.threshold_breach',
    judge_id: 'judge_1',
    trace_id: 'trc_1',
    score: 2,
    threshold: 3,
    severity: 'critical',
  });
  expect(breachOf({ judge_id: 'judge_1', threshold: { pass: 1 } }, 'trc_1', 0)?.threshold).toBe(1);
});
