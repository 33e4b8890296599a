// Workers hold the newest traces of their partitions in memory, and would write a trace's row anew, with what it said before, when
// another event of it comes. So who erases asks the owner of each partition to forget its traces first, and an answer says that
// nothing made of them is on its way to the store any more. Over core NATS: an owner that dies has forgotten them too.
// When the rows are gone the owners are asked once more, to forget which events of the traces they have seen: the same event sent after
// that is new data.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Msg, NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../../ops/platform/logger.ts';
import { type Forget, forgetShape, forgetSubject, forgottenPartition } from '../../schemas/signals/erasure.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import { partitionOf } from '../domain/traces/ids.ts';

const ASK_MS_MAX = 5000;
const PAUSE_MS = 200;
/** For as long a partition may be nobody's; then the whole work is tried again later. */
const WAIT_MS_MAX = 60_000;

export type Forgettable = Forget['what'];

/** Ids of one call are 128 characters each at most. */
export const FORGET_AT_ONCE = 2000;

/**
 * Has the owners of their partitions forget traces.
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

/** Asks the owner of a partition, whoever that becomes, until it answers. @throws StoreUnavailable */
async function askOwner(nc: NatsConnection, partition: number, call: Forget, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  for (;;) {
    const answered = await nc.request(forgetSubject(partition), JSON.stringify(call), { timeout: ASK_MS_MAX }).then(
      () => true,
      () => false,
    );
    if (answered) return;
    if (performance.now() > deadline)
      throw new StoreUnavailable(`no worker has partition ${String(partition)} of the log`);
    await sleep(PAUSE_MS, undefined, { signal });
  }
}

/**
 * Has the owners of all partitions drop what they hold of an organization.
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
 * Answers such calls for the partitions that this worker owns; others stay silent.
 * @param forget resolves false when the partition is another's
 * @returns what stops it
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
        logger.warn({ err: cause }, 'traces that are erased could not be forgotten; whoever erases asks again');
      });
    },
  });
  return () => {
    subscription.unsubscribe();
  };
}
