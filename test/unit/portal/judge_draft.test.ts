// The draft of a judge in the editor, and the words and shapes of evals.
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestError } from '../../../api/portal/web/client/error.ts';
import { binsOf } from '../../../api/portal/web/screens/evals/bins.ts';
import { differenceWords } from '../../../api/portal/web/screens/evals/difference_words.ts';
import {
  bodyOf,
  type Draft,
  draftOf,
  EMPTY_DRAFT,
  itemsOf,
  type Judge,
  missingIn,
  refusedField,
} from '../../../api/portal/web/screens/judges/draft.ts';
import { STARTERS } from '../../../api/portal/web/screens/judges/starters.ts';
import { compileRule } from '../../../pipeline/domain/judging/rules.ts';
import { createBody } from '../../../api/control/judges/schema.ts';

/** Returns the judge that the API stores for a draft. */
const stored = (draft: Draft): Judge => {
  const body = createBody.parse(bodyOf(draft));
  const isRule = body.kind === 'deterministic';
  return {
    judge_id: 'judge_0',
    version: 1,
    name: body.name,
    kind: body.kind,
    rule: isRule ? { ...body.rule } : null,
    prompt_template: isRule ? null : body.prompt_template,
    model: isRule ? null : body.model,
    rubric: isRule ? null : (body.rubric as Judge['rubric']),
    threshold: { pass: body.threshold.pass, ...(body.threshold.warn == null ? {} : { warn: body.threshold.warn }) },
    scope: {},
    cooldown_seconds: isRule ? 0 : (body.cooldown_seconds ?? 0),
    enabled: body.enabled ?? true,
    guard: null,
    created_at: '2026-01-01T00:00:00.000Z',
    updated_at: '2026-01-01T00:00:00.000Z',
  };
};

describe('the draft of a judge', () => {
  it.each(STARTERS.map(({ id, draft }) => [id, draft] as const))(
    'the rule to begin with "%s" lacks nothing, is accepted by the API and compiles',
    (_id, draft) => {
      expect(missingIn(draft)).toEqual({});
      const body = createBody.parse(bodyOf(draft));
      expect(body.kind).toBe('deterministic');
      if (body.kind === 'deterministic')
        expect(() => compileRule({ ...body.rule, fields: body.rule.fields ?? ['response'] })).not.toThrow();
      expect(bodyOf(draftOf(stored(draft)))).toEqual(bodyOf(draft));
    },
  );

  it('survives storage for a judge that asks a model', () => {
    const draft: Draft = { ...EMPTY_DRAFT, kind: 'llm', name: 'helps', model: 'm', pass: '4', warn: '3' };
    expect(bodyOf(draftOf(stored(draft)))).toEqual(bodyOf(draft));
  });

  it.each<[string, Partial<Draft>]>([
    ['rule.value', { type: 'contains', value: ' ' }],
    ['rule.pattern', { type: 'regex_absent' }],
    ['rule.max', { type: 'max_cost_usd', max: 'much' }],
    ['rule.outcomes', { type: 'outcome_is', outcomes: [] }],
    ['rule.schema', { type: 'json_schema', schema: '{' }],
    ['threshold.pass', { type: 'json_valid', pass: '' }],
    ['threshold.warn', { type: 'json_valid', warn: 'low' }],
    ['model', { kind: 'llm' }],
    ['cooldown_seconds', { kind: 'llm', model: 'm', cooldown: '' }],
    ['rubric', { kind: 'llm', model: 'm', scale: '1, two' }],
  ])('says that %s is missing', (field, patch) => {
    expect(Object.keys(missingIn({ ...EMPTY_DRAFT, ...patch }))).toEqual([field]);
  });

  it('names the field of a refused request and ignores other failures', () => {
    const refused = (detail: string, status = 422) =>
      refusedField(new RequestError(status, { code: 'invalid_request', detail, request_id: null }));
    expect(refused('draft.rule.pattern: is not closed')).toEqual({ field: 'rule.pattern', text: 'is not closed' });
    expect(refused('rubric.scale: must rise')).toEqual({ field: 'rubric', text: 'must rise' });
    expect(refused('scope.tags[3]: is too long')).toEqual({ field: 'scope.tags', text: 'is too long' });
    expect(refused('No worker.', 502)).toBeNull();
    expect(refusedField(new Error('rule.pattern: x'))).toBeNull();
  });

  it('splits lists at commas, without empty and repeated items', () => {
    expect(itemsOf(' a, b ,,a,')).toEqual(['a', 'b']);
  });
});

describe('the distribution of scores', () => {
  it('counts every score exactly once', () => {
    fc.assert(
      fc.property(fc.array(fc.double({ noNaN: true, min: -1e6, max: 1e6 })), (scores) => {
        const { points, values } = binsOf(scores);
        expect(values.reduce((sum, value) => sum + value, 0)).toBe(scores.length);
        expect(points.length).toBe(values.length);
      }),
    );
  });
});

describe('the difference of two evals in words', () => {
  it.each([
    [{ pairs: 40, mean: -0.081, half_width: 0.049, is_beyond_chance: true }, /^−0\.08 ± 0\.05: worse, beyond chance/],
    [{ pairs: 40, mean: 0.3, half_width: 0.1, is_beyond_chance: true }, /^\+0\.3 ± 0\.1: better, beyond chance/],
    [{ pairs: 3, mean: 0.3, half_width: 0.9, is_beyond_chance: false }, /^\+0\.3 ± 0\.9: within chance/],
    [{ pairs: 1, mean: 1, half_width: null, is_beyond_chance: false }, /^\+1: one item says nothing/],
    [null, /^No item has a score in both evals/],
  ])('says what %j means', (difference, words) => {
    expect(differenceWords(difference)).toMatch(words);
  });
});
