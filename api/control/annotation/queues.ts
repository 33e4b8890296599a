// Creates, lists, gets, changes and deletes annotation queues, which everybody in the organization
// sees.
import { randomBytes } from 'node:crypto';
import type { ItemRecord, QueueRecord } from '../../../schemas/records/annotation.ts';
import { fromTo, touched } from '../../http/changes.ts';
import { authorOf, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { pageOf, type PageQuery } from '../../http/list_pages.ts';
import type { PageMeta } from '../../http/pagination.ts';
import { isDone } from './items.ts';
import type { Counts, CreateBody, PatchBody, QueueItem } from './schema.ts';
import type { AnnotationStore } from './store.ts';

/** Maximum queues of an organization: every API process holds them and their items in memory. */
export const QUEUES_ORG_MAX = 50;
const FIELDS = ['name', 'instructions', 'people_per_item'] as const;

export interface QueuesDeps {
  annotations: AnnotationStore;
  /** Milliseconds since the epoch. */
  now: () => number;
}

type Reading = Pick<QueuesDeps, 'annotations'>;

/** Returns how far a queue is. */
export function countsOf(
  queue: Pick<QueueRecord, 'people_per_item' | 'scores' | 'mode'>,
  items: readonly ItemRecord[],
): Counts {
  let [done, skipped] = [0, 0];
  for (const item of items) {
    if (isDone(item, queue)) done += 1;
    else if (item.answers.some(({ said }) => said === 'skip')) skipped += 1;
  }
  return { total: items.length, done, left: items.length - done, skipped };
}

/** Returns the queue as responses show it. */
export function queueItemOf({ annotations }: Reading, queue: QueueRecord): QueueItem {
  const { queue_id, name, instructions, mode, scores, people_per_item, made_by, created_at, updated_at } = queue;
  const items = annotations.items(queue.org_id, queue_id);
  const last = items.reduce((newest, { answers }) => Math.max(newest, ...answers.map(({ at_ms }) => at_ms)), 0);
  return {
    queue_id,
    name,
    instructions,
    mode,
    scores,
    people_per_item,
    progress: countsOf(queue, items),
    last_answer_at: last === 0 ? null : new Date(last).toISOString(),
    made_by,
    created_at,
    updated_at,
  };
}

/** Returns one page of the queues of an organization, by name. */
export function listQueues(deps: Reading, org_id: string, query: PageQuery): { data: QueueItem[]; meta: PageMeta } {
  const { data, meta } = pageOf(deps.annotations.queues(org_id).sort(byName), query);
  return { data: data.map((queue) => queueItemOf(deps, queue)), meta };
}

/** @throws ApiError not_found */
export function getQueue({ annotations }: Reading, org_id: string, queue_id: string): QueueRecord {
  const queue = annotations.queue(org_id, queue_id);
  if (queue === null) throw noQueue(queue_id);
  return queue;
}

/** @throws ApiError conflict when the organization has the maximum number of queues */
export async function createQueue(
  { annotations, now }: QueuesDeps,
  caller: OrgCredential,
  body: CreateBody,
): Promise<QueueRecord> {
  const { org_id } = caller;
  if (annotations.queues(org_id).length >= QUEUES_ORG_MAX)
    throw new ApiError(
      'conflict',
      `This organization has ${QUEUES_ORG_MAX} annotation queues, the most that it can have. Delete one first.`,
    );
  const at = new Date(now()).toISOString();
  const queue: QueueRecord = {
    kind: 'queue',
    org_id,
    queue_id: `queue_${randomBytes(8).toString('hex')}`,
    ...body,
    made_by: authorOf(caller),
    created_at: at,
    updated_at: at,
  };
  await annotations.create(queue);
  return queue;
}

/**
 * Changes the fields that are given.
 * @returns the queue and the fields that differ, with their values before and after
 * @throws ApiError not_found
 */
export async function changeQueue(
  { annotations, now }: QueuesDeps,
  org_id: string,
  queue_id: string,
  patch: PatchBody,
): Promise<{ queue: QueueRecord; changes: Record<string, unknown> }> {
  let changes: Record<string, unknown> = {};
  const queue = await annotations.changeQueue(org_id, queue_id, (before) => {
    const { name = before.name, instructions = before.instructions, people_per_item = before.people_per_item } = patch;
    const after = { ...before, name, instructions, people_per_item };
    changes = fromTo(before, after, FIELDS);
    return touched(before, after, now());
  });
  if (queue === null) throw noQueue(queue_id);
  return { queue, changes };
}

/** Deletes a queue with its items. Scores that were given stay. @throws ApiError not_found, conflict */
export async function deleteQueue({ annotations }: Reading, org_id: string, queue_id: string): Promise<void> {
  if (!(await annotations.remove(org_id, queue_id))) throw noQueue(queue_id);
}

function byName(a: QueueRecord, b: QueueRecord): number {
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return a.queue_id < b.queue_id ? -1 : 1;
}

const noQueue = (queue_id: string) => new ApiError('not_found', `There is no annotation queue ${queue_id}.`);
