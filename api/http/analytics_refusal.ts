// Answers a refused analytics query with 422 invalid_request.
import { AnalyticsRefused } from '../../sql/analytics/check.ts';
import { ApiError } from './errors.ts';

/**
 * Returns the result of a check of an analytics query.
 * @throws ApiError invalid_request when the query is refused
 */
export function refusedAsInvalid<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!(error instanceof AnalyticsRefused)) throw error;
    throw new ApiError('invalid_request', error.message, { cause: error });
  }
}
