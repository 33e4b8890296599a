// Why JetStream did not take a message, where that is no matter of trying again: told by the client, or by the server's code.
import { JetStreamApiError } from '@nats-io/jetstream';
import { errors } from '@nats-io/transport-node';

const STORE_FULL = 10077;
const MESSAGE_TOO_LARGE = 10054;

/** It is larger than the server or its stream takes: the same bytes are refused for ever. */
export function isTooLarge(error: unknown): boolean {
  if (error instanceof JetStreamApiError) return error.code === MESSAGE_TOO_LARGE;
  return error instanceof errors.InvalidArgumentError && error.message.includes('max_payload');
}

/** Its stream holds all that it may and forgets nothing. The code is also that of a store that failed to write; only the text tells them apart. */
export const isFull = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === STORE_FULL && error.message.includes('maximum');
