// The id of a request: req_… in the X-Request-Id header of every answer, in meta or the error body, and in the log.
import { randomUUID } from 'node:crypto';

export const REQUEST_ID_HEADER = 'X-Request-Id';

/** A new request id; ids of a caller's own making are not taken over. */
export function newRequestId(): string {
  return `req_${randomUUID().replaceAll('-', '')}`;
}
