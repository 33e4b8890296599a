// The policy of an organization as a form holds it. Pure.
import type { components } from '../../client/contract.d.ts';
import { parseLimit } from '../costs/amounts.ts';

export type Policy = components['schemas']['Policy'];
/** The fields that the form changes. The formula of outcomes and the PII rules have pages of their own. */
type PolicyFields = Pick<
  Policy,
  | 'period'
  | 'fiscal_year_start_month'
  | 'max_prompt_tokens'
  | 'compare_threshold_percent'
  | 'regression_drop'
  | 'judge_quota_calls'
  | 'capture'
>;
export type PolicyDraft = { [K in keyof PolicyFields]: string };
export type PolicyChange = { [K in keyof PolicyFields]?: PolicyFields[K] | null };

const written = (value: number | null): string => (value === null ? '' : String(value));

export function draftOf(policy: Policy): PolicyDraft {
  return {
    period: policy.period,
    fiscal_year_start_month: String(policy.fiscal_year_start_month),
    max_prompt_tokens: written(policy.max_prompt_tokens),
    compare_threshold_percent: String(policy.compare_threshold_percent),
    regression_drop: String(policy.regression_drop),
    judge_quota_calls: written(policy.judge_quota_calls),
    capture: policy.capture,
  };
}

/** Reads a number with decimals; null for an empty field, which resets it to its default; undefined for a text. */
function decimalOf(text: string): number | null | undefined {
  const plain = text.trim();
  if (plain === '') return null;
  return /^\d{1,9}(?:\.\d{1,9})?$/.test(plain) ? Number(plain) : undefined;
}

/** Returns the fields that differ from the policy; the name of the field that is no number in place of them. */
export function changeOf(draft: PolicyDraft, stored: Policy): PolicyChange | { wrong: keyof PolicyDraft } {
  const read = {
    max_prompt_tokens: parseLimit(draft.max_prompt_tokens),
    judge_quota_calls: parseLimit(draft.judge_quota_calls),
    compare_threshold_percent: decimalOf(draft.compare_threshold_percent),
    regression_drop: decimalOf(draft.regression_drop),
  };
  const wrong = (Object.keys(read) as (keyof typeof read)[]).find((name) => read[name] === undefined);
  if (wrong !== undefined) return { wrong };
  const next: PolicyChange = {
    ...(read as PolicyChange),
    period: draft.period === 'fiscal_year' ? 'fiscal_year' : 'month',
    fiscal_year_start_month: Number(draft.fiscal_year_start_month),
    capture: draft.capture === 'usage' ? 'usage' : 'full',
  };
  return Object.fromEntries(
    Object.entries(next).filter(([name, value]) => stored[name as keyof PolicyFields] !== value),
  );
}
