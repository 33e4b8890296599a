// Signal that rows of traces were deleted. Workers keep the newest traces of their partitions in
// memory; with the next event of such a trace a worker would write the deleted row again. On the
// signal a worker drops its complete traces and reads them from the store when it needs them. The
// signal is a plain NATS message: a worker that is not running has nothing in memory.
import type { NatsConnection } from '@nats-io/transport-node';
import { TRACES_DELETED_SUBJECT } from '../../schemas/signals/retention.ts';

/** Publishes the signal. Resolves when the NATS server has received it. */
export async function announceDeletedTraces(nc: NatsConnection): Promise<void> {
  nc.publish(TRACES_DELETED_SUBJECT);
  await nc.flush();
}

/** @param forget drops the complete traces of this worker's partitions from memory */
export function onTracesDeleted(nc: NatsConnection, forget: () => void): void {
  nc.subscribe(TRACES_DELETED_SUBJECT, {
    callback: (error) => {
      if (error === null) forget();
    },
  });
}
