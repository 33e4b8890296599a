// The id of a request, req_…: in the X-Request-Id header of every response, in meta or the error
// body, and in the log.
import { randomUUID } from 'node:crypto';

export const REQUEST_ID_HEADER = 'X-Request-Id';

/** Returns a new request id; an id that the caller sends is ignored. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`;
}
