// What a PII policy cannot be checked for by its shape: whether the engine takes its patterns.
import { PatternError } from '../../pipeline/domain/linear_regex.ts';
import { PiiRedactor } from '../../pipeline/domain/pii.ts';
import type { PiiPolicyChange } from '../../schemas/records/pii_policy.ts';
import { ApiError } from '../http/errors.ts';

/**
 * @param at where the policy stands in the body, in front of the names of its fields: '' or 'pii.'
 * @throws ApiError invalid_request naming the first pattern that cannot be used
 */
export function checkPatterns({ custom }: PiiPolicyChange, at = ''): void {
  for (const [index, pattern] of (custom ?? []).entries()) {
    try {
      new PiiRedactor({ kinds: [], custom: [pattern], hash_key: null });
    } catch (error) {
      if (!(error instanceof PatternError)) throw error;
      throw new ApiError('invalid_request', `${at}custom[${String(index)}].pattern: ${error.message}`, { cause: error });
    }
  }
}
