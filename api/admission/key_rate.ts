// The rate of requests of an API key outside the intakes, such as reads.
import type { ApiKeyCredential } from '../http/credential.ts';
import type { ApiError } from '../http/errors.ts';
import type { BudgetCheck } from './budget/check.ts';
import { errorOf, type Settled } from './decision.ts';

const refusal = (decision: Settled): ApiError | null => (decision.kind === 'reject' ? errorOf(decision) : null);

/** Returns a function that charges one request to the rate of its key, and returns the error where it is used up. */
export function keyRequestsOf(
  check: Pick<BudgetCheck, 'decideKeyRequest'>,
): (key: ApiKeyCredential) => Promise<ApiError | null> | ApiError | null {
  return (key) => {
    if (key.limits?.requests_per_minute == null) return null;
    const decision = check.decideKeyRequest(key);
    return decision.kind === 'wait' ? decision.decided.then(refusal) : refusal(decision);
  };
}
