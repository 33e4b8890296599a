// Publishes one record to a JetStream stream with the fingerprint of its schema. Resolves once the
// server has stored it.
import { headers } from '@nats-io/transport-node';
import { type Codec, FINGERPRINT_HEADER } from '../../../schemas/codec.ts';
import type { Log } from './open_log.ts';

export interface RecordOptions {
  /**
   * Identifies the record: within the stream's deduplication window, a second message with this id
   * is not stored.
   */
  msgID: string;
  timeoutMs: number;
}

/**
 * Publishes one record.
 * @throws Error when the server did not confirm it in time; the record may or may not be stored
 * then
 */
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
