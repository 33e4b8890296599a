// Opens durable pull consumers of JetStream for queue consumers: acknowledgements are explicit, every
// message of the stream is delivered, and the server never stops redelivering one. A durable consumer
// that does not exist is created, and one whose bounds differ is updated, so a release can change them.
import { AckPolicy, type Consumer, DeliverPolicy } from '@nats-io/jetstream';
import type { Log } from '../../ops/platform/nats/open_log.ts';

const NANOS_PER_MS = 1_000_000;

export interface Durable {
  log: Log;
  stream: string;
  durable: string;
  /** Subject to read, fixed when the durable consumer is created; all of the stream unless given. */
  subject?: string;
  ackWaitMs: number;
  /** Maximum number of messages that wait for an acknowledgement; -1 sets no bound. */
  ackPendingMax: number;
}

/**
 * Resolves with the durable consumer.
 * @throws Error when the server does not answer, or when there is no such stream
 */
export async function openDurable({
  log,
  stream,
  durable,
  subject,
  ackWaitMs,
  ackPendingMax,
}: Durable): Promise<Consumer> {
  const bounds = { ack_wait: ackWaitMs * NANOS_PER_MS, max_ack_pending: ackPendingMax, max_deliver: -1 };
  const known = await log.jsm.consumers.info(stream, durable).catch(() => null);
  if (known === null) {
    await log.jsm.consumers.add(stream, {
      durable_name: durable,
      ack_policy: AckPolicy.Explicit,
      deliver_policy: DeliverPolicy.All,
      ...(subject === undefined ? {} : { filter_subject: subject }),
      ...bounds,
    });
  } else if (known.config.max_ack_pending !== ackPendingMax || known.config.ack_wait !== bounds.ack_wait) {
    await log.jsm.consumers.update(stream, durable, bounds);
  }
  return log.js.consumers.get(stream, durable);
}
