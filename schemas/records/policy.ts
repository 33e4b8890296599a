// An organization's settings for its telemetry, as stored in KV and as answered. A parsed record
// has every field, with its default where none was set.
import { z } from 'zod';
import { CAPTURE_MODES } from './api_key.ts';

export const VALUE_OF_OUTCOMES_CHARS_MAX = 1000;

const fields = {
  period: z.enum(['month', 'fiscal_year']).describe('Length of the period that budgets count over'),
  fiscal_year_start_month: z.int().min(1).max(12).describe('First month of a fiscal year; 1 is January'),
  max_prompt_tokens: z
    .int()
    .min(1)
    .max(100_000_000)
    .nullable()
    .describe('Longer prompts are cut when they are stored; null: none is cut'),
  value_of_outcomes: z
    .string()
    .trim()
    .min(1)
    .max(VALUE_OF_OUTCOMES_CHARS_MAX)
    .nullable()
    .describe('Value of outcomes in USD: arithmetic over their names, such as tickets * 12.5 + leads * 40'),
  compare_threshold_percent: z
    .number()
    .min(0)
    .max(1_000_000)
    .describe('Change above which a comparison of traces reports a difference'),
  regression_drop: z
    .number()
    .min(0)
    .max(1_000_000)
    .describe('Drop of the mean score from which an eval counts as a regression'),
  judge_quota_calls: z
    .int()
    .min(0)
    .max(1_000_000_000)
    .nullable()
    .describe('Maximum number of calls of LLM judges in a period; null: unlimited'),
  capture: z
    .enum(CAPTURE_MODES)
    .describe('usage: the gateway stores no prompt, response or attribute values of any call of the organization'),
};

export const policy = z.object(fields);
export type Policy = z.infer<typeof policy>;

/** Settings of an organization that has set none. */
export const DEFAULT_POLICY: Policy = Object.freeze({
  period: 'month',
  fiscal_year_start_month: 1,
  max_prompt_tokens: null,
  value_of_outcomes: null,
  compare_threshold_percent: 10,
  regression_drop: 0.5,
  judge_quota_calls: null,
  capture: 'full',
});

/** Fields to change; null resets a field to its default. */
export const policyChange = z.strictObject({
  period: fields.period.nullish(),
  fiscal_year_start_month: fields.fiscal_year_start_month.nullish(),
  max_prompt_tokens: fields.max_prompt_tokens.nullish(),
  value_of_outcomes: fields.value_of_outcomes.nullish(),
  compare_threshold_percent: fields.compare_threshold_percent.nullish(),
  regression_drop: fields.regression_drop.nullish(),
  judge_quota_calls: fields.judge_quota_calls.nullish(),
  capture: fields.capture.nullish(),
});
export type PolicyChange = z.infer<typeof policyChange>;

/** Records stored before a release added a field take its default. */
const stored = policy.partial();

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parsePolicy(text: string): Policy {
  return { ...DEFAULT_POLICY, ...definedOf(stored.parse(JSON.parse(text))) };
}

/** Returns the settings with a change applied. */
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
