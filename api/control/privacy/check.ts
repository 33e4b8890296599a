// What a PII policy cannot be checked for by its shape: whether the engine takes its patterns, and whether they are small enough.
import { checkOwnPatterns, UnusablePattern } from '../../../pipeline/domain/pii/custom.ts';
import type { PiiPolicyChange } from '../../../schemas/records/pii_policy.ts';
import { ApiError } from '../../http/errors.ts';

/**
 * @param at where the policy stands in the body, in front of the names of its fields: '' or 'pii.'
 * @throws ApiError invalid_request naming the first pattern that cannot be used, and what would be taken
 */
export function checkPatterns({ custom }: PiiPolicyChange, at = ''): void {
  try {
    checkOwnPatterns((custom ?? []).map(({ pattern }) => pattern));
  } catch (error) {
    if (!(error instanceof UnusablePattern)) throw error;
    throw new ApiError('invalid_request', `${at}custom[${String(error.index)}].pattern: ${error.message}`, {
      cause: error,
    });
  }
}
