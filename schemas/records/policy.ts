// An org's own settings of how its telemetry is treated, as stored in KV by org and as answered. Read by the API and by the
// pipeline. In: the text of a value. Out: every field, with the default where none was set.
import { z } from 'zod';

export const VALUE_OF_OUTCOMES_CHARS_MAX = 1000;

const fields = {
  period: z.enum(['month', 'fiscal_year']).describe('Over which budgets count'),
  fiscal_year_start_month: z.int().min(1).max(12).describe('First month of a fiscal year; 1 is January'),
  max_prompt_tokens: z
    .int()
    .min(1)
    .max(100_000_000)
    .nullable()
    .describe('Longer prompts are cut when they are stored; null: none is'),
  value_of_outcomes: z
    .string()
    .trim()
    .min(1)
    .max(VALUE_OF_OUTCOMES_CHARS_MAX)
    .nullable()
    .describe('What outcomes are worth in USD: arithmetic over their names, such as tickets * 12.5 + leads * 40'),
  compare_threshold_percent: z
    .number()
    .min(0)
    .max(1_000_000)
    .describe('Beyond which change a comparison of traces says that they differ'),
  regression_drop: z
    .number()
    .min(0)
    .max(1_000_000)
    .describe('From which drop of the mean score on an eval counts as a regression'),
  judge_quota_calls: z
    .int()
    .min(0)
    .max(1_000_000_000)
    .nullable()
    .describe('Calls of LLM judges in a period; null: as many as it takes'),
};

export const policy = z.object(fields);
export type Policy = z.infer<typeof policy>;

/** What holds for an org that has set nothing. */
export const DEFAULT_POLICY: Policy = Object.freeze({
  period: 'month',
  fiscal_year_start_month: 1,
  max_prompt_tokens: null,
  value_of_outcomes: null,
  compare_threshold_percent: 10,
  regression_drop: 0.5,
  judge_quota_calls: null,
});

/** Fields to change; null sets the default again. */
export const policyChange = z.strictObject({
  period: fields.period.nullish(),
  fiscal_year_start_month: fields.fiscal_year_start_month.nullish(),
  max_prompt_tokens: fields.max_prompt_tokens.nullish(),
  value_of_outcomes: fields.value_of_outcomes.nullish(),
  compare_threshold_percent: fields.compare_threshold_percent.nullish(),
  regression_drop: fields.regression_drop.nullish(),
  judge_quota_calls: fields.judge_quota_calls.nullish(),
});
export type PolicyChange = z.infer<typeof policyChange>;

/** Fields that a later release added have their default in what was stored before. */
const stored = policy.partial();

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parsePolicy(text: string): Policy {
  return { ...DEFAULT_POLICY, ...definedOf(stored.parse(JSON.parse(text))) };
}

/** The policy with the change made. */
export function changedPolicy(before: Policy, change: PolicyChange): Policy {
  const given = definedOf(change);
  const reset = Object.entries(given)
    .filter(([, value]) => value === null)
    .map(([name]) => [name, DEFAULT_POLICY[name as keyof Policy]]);
  return policy.parse({ ...before, ...given, ...Object.fromEntries(reset) });
}

function definedOf<T extends object>(fields: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}
