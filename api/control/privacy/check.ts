// Checks of a PII policy that its shape cannot express: whether the engine accepts its patterns,
// and whether they are small enough.
import { checkOwnPatterns, UnusablePattern } from '../../../pipeline/domain/pii/custom.ts';
import type { PiiPolicyChange } from '../../../schemas/records/pii_policy.ts';
import { ApiError } from '../../http/errors.ts';

/**
 * @param at prefix of the field names in errors: '' or 'pii.', for a policy inside another body
 * @throws ApiError invalid_request naming the first unusable pattern, and what is accepted
 */
export function checkPatterns({ custom }: PiiPolicyChange, at = ''): void {
  try {
    checkOwnPatterns((custom ?? []).map(({ pattern }) => pattern));
  } catch (error) {
    if (!(error instanceof UnusablePattern)) throw error;
    throw new ApiError('invalid_request', `${at}custom[${error.index}].pattern: ${error.message}`, {
      cause: error,
    });
  }
}
