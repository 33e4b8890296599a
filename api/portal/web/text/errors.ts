// The titles of failures. The API's own detail stands below the title. Pure.
import type { RequestError } from '../client/error.ts';

/** Returns the title for a failure of `what`, for example "the traces". */
export function errorTitle(error: Pick<RequestError, 'status' | 'code'> | null, what: string): string {
  if (error === null) return `The page failed to show ${what}`;
  switch (error.status) {
    case 0:
      return `The service did not answer the request for ${what}`;
    case 401:
      return 'You are not logged in';
    case 403:
      return `You may not read ${what}`;
    case 404:
      return `No such thing: ${what}`;
    case 410:
      return `Expired: ${what}`;
    case 422:
      return `The service did not accept the request for ${what}`;
    case 429:
      return `Too many requests: ${what} must wait`;
    case 502:
    case 503:
      return `The store behind ${what} is unavailable`;
    default:
      return `Could not load ${what}`;
  }
}
