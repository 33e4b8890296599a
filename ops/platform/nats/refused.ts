// Recognizes messages that JetStream refuses in a way that a retry does not change, by the error of
// the client or the code of the server.
import { JetStreamApiError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';

const STORE_FULL = 10077;
const MESSAGE_TOO_LARGE = 10054;

/**
 * Returns true when the message is larger than the server or its stream accepts: the same bytes are
 * refused for ever.
 */
export function isTooLarge(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.code === MESSAGE_TOO_LARGE;
  return error instanceof errors.InvalidArgumentError && error.message.includes('max_payload');
}

/**
 * Returns true when the stream is full and discards nothing. A store that failed to write has the
 * same code; only the text tells them apart.
 */
export const isFull = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === STORE_FULL && error.message.includes('maximum');
