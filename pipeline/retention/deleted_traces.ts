// Workers hold the newest traces of their partitions in memory, and would take back a row that retention has deleted, and put what it said
// before, when another event of its trace comes. So they are told when rows of traces have gone, and look up in the store what they
// are asked for next. Over core NATS: nothing is stored, and a worker that was away has nothing in memory.
import type { NatsConnection } from '@nats-io/transport-node';

const SUBJECT = 'retention.deleted';

/** Resolves when the server has it. */
export async function announceDeletedTraces(nc: NatsConnection): Promise<void> {
  nc.publish(SUBJECT);
  await nc.flush();
}

/** @param forget has the complete traces of this worker's partitions forgotten */
export function onTracesDeleted(nc: NatsConnection, forget: () => void): void {
  nc.subscribe(SUBJECT, {
    callback: (error) => {
      if (error === null) forget();
    },
  });
}
