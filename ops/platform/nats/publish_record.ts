// Puts one record into a JetStream stream, named by its schema. Resolves when the server has stored it.
import { headers } from '@nats-io/transport-node';
import { type Codec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import type { Log } from './open_log.ts';

export interface RecordOptions {
  /** The same for the same record: within the stream's window a second one is not stored. */
  msgID: string;
  timeoutMs: number;
}

/** @throws Error when it was not confirmed in time, in which case it may or may not be stored */
export async function publishRecord<T>(
  log: Log,
  subject: string,
  codec: Codec<T>,
  value: T,
  options: RecordOptions,
): Promise<void> {
  const head = headers();
  head.set(FINGERPRINT_HEADER, codec.fingerprint);
  await log.js.publish(subject, codec.encode(value), {
    msgID: options.msgID,
    headers: head,
    timeout: options.timeoutMs,
  });
}
