// Requests to the owners of partitions to drop traces from memory. Workers keep the newest traces
// of their partitions in memory, and with the next event of an erased trace its owner would write
// the erased row again. An erasure therefore asks each owner to drop its traces; the owner answers
// once nothing made of them is on its way to the store. The requests are plain NATS messages: an
// owner that dies loses its memory anyway. Once the rows are deleted, the erasure asks again, for
// the identities of the traces' events, so that the same event sent later counts as new.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../../ops/platform/logger.ts';
import { type Forget, forgetShape, forgetSubject, forgottenPartition } from '../../schemas/signals/erasure.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import { partitionOf } from '../domain/traces/ids.ts';

const ASK_MS_MAX = 5000;
const PAUSE_MS = 200;
/** Maximum time that a partition may be without an owner; then the whole job is retried later. */
const WAIT_MS_MAX = 60_000;

export type Forgettable = Forget['what'];

/** Maximum traces of one request; an id has at most 128 characters. */
export const FORGET_AT_ONCE = 2000;

/**
 * Tells the owners of the traces' partitions to drop them from memory.
 * @throws StoreUnavailable when a partition has had no owner for a minute
 */
export async function forgetTraces(
  nc: NatsConnection,
  partitions: number,
  { org_id, trace_ids, what }: Forget,
  signal: AbortSignal,
): Promise<void> {
  const owned = Map.groupBy(trace_ids, (trace_id) => partitionOf(org_id, trace_id, partitions));
  await Promise.all(
    [...owned].map(async ([partition, own]) => {
      await askOwner(nc, partition, { org_id, trace_ids: own, what }, signal);
    }),
  );
}

/**
 * Sends a request to the owner of a partition, and to later owners, until one answers.
 * @throws StoreUnavailable
 */
async function askOwner(nc: NatsConnection, partition: number, call: Forget, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const answered = await nc.request(forgetSubject(partition), JSON.stringify(call), { timeout: ASK_MS_MAX }).then(
      () => true,
      () => false,
    );
    if (answered) return;
    if (performance.now() > deadline)
      throw new StoreUnavailable(`no worker owns partition ${partition} of the ingest log`);
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

/**
 * Tells the owners of all partitions to drop everything of an organization from memory.
 * @throws StoreUnavailable when a partition has had no owner for a minute
 */
export async function forgetOrg(
  nc: NatsConnection,
  partitions: number,
  org_id: string,
  signal: AbortSignal,
): Promise<void> {
  const all = Array.from({ length: partitions }, (_, partition) => partition);
  const call: Forget = { org_id, trace_ids: [], what: 'org' };
  await Promise.all(all.map((partition) => askOwner(nc, partition, call, signal)));
}

/**
 * Answers such requests for the partitions that this worker owns; other workers do not answer.
 * @param forget resolves false when another worker owns the partition
 * @returns a function that stops answering
 */
export function answerForgets(
  nc: NatsConnection,
  forget: (partition: number, org_id: string, traceIds: readonly string[], what: Forgettable) => Promise<boolean>,
  logger: Logger,
): () => void {
  const answer = async (message: Msg): Promise<void> => {
    const { org_id, trace_ids, what } = forgetShape.parse(message.json());
    const partition = forgottenPartition(message.subject);
    if ((await forget(partition, org_id, trace_ids, what)) && !nc.isClosed()) message.respond();
  };
  const subscription = nc.subscribe(forgetSubject('*'), {
    callback: (error, message) => {
      if (error !== null) return;
      answer(message).catch((cause: unknown) => {
        logger.warn({ err: cause }, 'erased traces could not be dropped from memory; the erasure asks again');
      });
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}
