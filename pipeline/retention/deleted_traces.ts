// Workers hold the newest traces of their partitions in memory, and would take back a row that retention has deleted, and put what it said
// before, when another event of its trace comes. So they are told when rows of traces have gone, and look up in the store what they
// are asked for next. Over core NATS: nothing is stored, and a worker that was away has nothing in memory.
import type { NatsConnection } from '@nats-io/transport-node';
import { TRACES_DELETED_SUBJECT } from '../../schemas/signals/retention.ts';

/** Resolves when the server has it. */
export async function tellTracesDeleted(nc: NatsConnection): Promise<void> {
  nc.publish(TRACES_DELETED_SUBJECT);
  await nc.flush();
}

/** @param forget has the complete traces of this worker's partitions forgotten */
export function onTracesDeleted(nc: NatsConnection, forget: () => void): void {
  nc.subscribe(TRACES_DELETED_SUBJECT, {
    callback: (error) => {
      if (error === null) forget();
    },
  });
}
