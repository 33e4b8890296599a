// Lets people work on a queue: get the next items, answer them, take an answer back. An item belongs
// for ten minutes to the person who got it. Every step is one compare-and-swap of the item's record,
// so no item goes to more people than it asks for, and a process that dies loses nothing.
import {
  type Annotator,
  type ItemRecord,
  type QueueRecord,
  sameAnnotator,
} from '../../../schemas/records/annotation.ts';
import { authorOf, may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import {
  answerOf,
  checkScores,
  digestOf,
  isFreeFor,
  leased,
  leasedItemOf,
  leaseOf,
  leasesOf,
  withAnswer,
  withoutAnswer,
} from './items.ts';
import type { Outbox } from './outbox.ts';
import { countsOf, getQueue } from './queues.ts';
import type { AnswerBody, Counts, LeasedItem, NextBody } from './schema.ts';
import type { AnnotationStore } from './store.ts';

export interface WorkDeps {
  annotations: AnnotationStore;
  outbox: Pick<Outbox, 'send'>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Permission to read the traces that a person is asked about. */
const READ_PERMISSION = 'traces:read';

export interface Worked<T> {
  data: T;
  meta: { progress: Counts };
}

/**
 * Leases the next items to the caller: first those that they have, then free ones in their order.
 * A repeated call returns the same items and renews their leases.
 * @throws ApiError not_found; conflict when the item that was asked for is not free
 */
export async function leaseNext(
  deps: WorkDeps,
  caller: OrgCredential,
  queue_id: string,
  { count, item_id }: NextBody,
): Promise<Worked<LeasedItem[]>> {
  const queue = queueFor(deps, caller, queue_id);
  const by = authorOf(caller);
  const now = deps.now();
  const got: ItemRecord[] = [];
  if (item_id !== undefined) got.push(await leaseOne(deps, queue, by, item_id));
  const items = deps.annotations.items(caller.org_id, queue_id);
  const own = items.filter((item) => leaseOf(item, by, now) !== undefined);
  const free = items.filter((item) => leaseOf(item, by, now) === undefined && isFreeFor(item, queue, by, now));
  for (const item of [...own, ...free]) {
    if (got.length >= count) break;
    if (got.some((one) => one.item_id === item.item_id)) continue;
    const mine = await takeLease(deps, queue, by, item);
    if (mine !== null) got.push(mine);
  }
  return worked(
    deps,
    queue,
    got.map((item) => leasedItemOf(item, queue, by, now)),
  );
}

/** Returns the item leased to the person; null when somebody else was faster. */
async function takeLease(
  { annotations, now }: WorkDeps,
  queue: QueueRecord,
  by: Annotator,
  item: ItemRecord,
): Promise<ItemRecord | null> {
  const after = await annotations.changeItem(item, (newest) => leased(newest, queue, by, now()));
  return after !== null && leaseOf(after, by, now()) !== undefined ? after : null;
}

async function leaseOne(deps: WorkDeps, queue: QueueRecord, by: Annotator, item_id: string): Promise<ItemRecord> {
  const item = itemOf(deps, queue, item_id);
  if (answerOf(item, by) !== undefined) return item;
  const mine = await takeLease(deps, queue, by, item);
  if (mine === null) throw lost(itemOf(deps, queue, item_id), by, deps.now());
  return mine;
}

/**
 * Stores the caller's answer, in place of an earlier one of theirs. The same answer again changes
 * nothing. An expired lease is no obstacle while the item is free.
 * @throws ApiError not_found; invalid_request; conflict when somebody else has the item now
 */
export async function giveAnswer(
  deps: WorkDeps,
  caller: OrgCredential,
  { queue_id, item_id }: { queue_id: string; item_id: string },
  body: AnswerBody,
): Promise<Worked<LeasedItem> & { changed: boolean }> {
  const queue = queueFor(deps, caller, queue_id);
  checkScores(queue, body);
  const by = authorOf(caller);
  let changed = false;
  const after = await deps.annotations.changeItem({ org_id: caller.org_id, queue_id, item_id }, (item) => {
    const now = deps.now();
    const mine = answerOf(item, by);
    changed = mine?.digest !== digestOf(body);
    if (!changed) return null;
    const mayReplace =
      mine !== undefined && (mine.said === 'scores' || isFreeFor(withoutAnswer(item, by), queue, by, now));
    if (!mayReplace && !isFreeFor(item, queue, by, now)) throw lost(item, by, now);
    return withAnswer(item, queue, { by, body, now });
  });
  if (after === null) throw noItem(item_id);
  await send(deps, after);
  return { ...worked(deps, queue, leasedItemOf(after, queue, by, deps.now())), changed };
}

/**
 * Takes back the caller's own answer and leases the item to them again. Without such an answer it
 * only leases the item.
 * @throws ApiError not_found; conflict when somebody else has the item now
 */
export async function undoAnswer(
  deps: WorkDeps,
  caller: OrgCredential,
  { queue_id, item_id }: { queue_id: string; item_id: string },
): Promise<Worked<LeasedItem> & { changed: boolean }> {
  const queue = queueFor(deps, caller, queue_id);
  const by = authorOf(caller);
  let changed = false;
  const after = await deps.annotations.changeItem({ org_id: caller.org_id, queue_id, item_id }, (item) => {
    const now = deps.now();
    changed = answerOf(item, by) !== undefined;
    const without = withoutAnswer(item, by);
    const mine = leased(without, queue, by, now);
    if (mine === null && !changed) throw lost(item, by, now);
    return mine ?? without;
  });
  if (after === null) throw noItem(item_id);
  await send(deps, after);
  return { ...worked(deps, queue, leasedItemOf(after, queue, by, deps.now())), changed };
}

/** Sends the scores of an answer that is stored. A failure is no error of the answer: the sweep repeats it. */
async function send({ outbox }: WorkDeps, item: ItemRecord): Promise<void> {
  await outbox.send(item).catch(() => undefined);
}

function worked<T>({ annotations }: WorkDeps, queue: QueueRecord, data: T): Worked<T> {
  return { data, meta: { progress: countsOf(queue, annotations.items(queue.org_id, queue.queue_id)) } };
}

/** @throws ApiError not_found; forbidden for a caller who may not read the traces */
function queueFor(deps: WorkDeps, caller: OrgCredential, queue_id: string): QueueRecord {
  const queue = getQueue(deps, caller.org_id, queue_id);
  if (!may(caller, READ_PERMISSION))
    throw new ApiError('forbidden', `Working in a queue also needs the permission ${READ_PERMISSION}.`);
  return queue;
}

function itemOf({ annotations }: WorkDeps, { org_id, queue_id }: QueueRecord, item_id: string): ItemRecord {
  const item = annotations.item(org_id, queue_id, item_id);
  if (item === null) throw noItem(item_id);
  return item;
}

const noItem = (item_id: string) => new ApiError('not_found', `The queue has no item ${item_id}.`);

/** Returns the error that says who has the item, or that it has all its answers. */
function lost(item: ItemRecord, by: Annotator, now: number): ApiError {
  const holders = leasesOf(item, now)
    .map((lease) => lease.by)
    .filter((other) => !sameAnnotator(other, by))
    .map(({ id }) => id);
  if (holders.length > 0)
    return new ApiError('conflict', `The item belongs to ${holders.join(', ')} now. Ask for the next one.`);
  const people = item.answers.filter(({ said }) => said === 'scores').map(({ by: { id } }) => id);
  return new ApiError(
    'conflict',
    people.length === 0
      ? 'The item is not free. Ask for the next one.'
      : `The item was answered by ${people.join(', ')}. Ask for the next one.`,
  );
}
