// The requests of annotation queues.
import { queryOptions } from '@tanstack/react-query';
import { type Answer, apiQuery, send } from '../../client/api.ts';
import { deleteThing, namesThing } from '../../client/deleted_thing.ts';
import { queryClient } from '../../client/query_client.ts';
import type { Values } from './score_keys.ts';

const ROOT = '/v1/annotation-queues';
const ONE = `${ROOT}/{queue_id}` as const;
const ITEM = `${ONE}/items/{item_id}` as const;

export type Queue = Answer<typeof ONE>['data'];
export type Progress = Answer<`${typeof ONE}/progress`>['data'];
export type AnsweredItem = Answer<`${typeof ONE}/items`>['data'][number];
export type ItemState = 'open' | 'done' | 'skipped' | 'disagreed';

/** An item that the person has. */
export interface Item {
  item_id: string;
  trace_ids: string[];
}

/** Items that a person has at once: saving shows the next one while another is on its way. */
const AHEAD = 3;
/** Numbers of a queue that is on the screen are read again after this time, milliseconds. */
const REREAD_MS = 15_000;

export const queuesQuery = (org_id: string) => queryOptions(apiQuery(org_id, ROOT, { query: { limit: 200 } }));
export const queueQuery = (org_id: string, queue_id: string) =>
  queryOptions({ ...apiQuery(org_id, ONE, { path: { queue_id } }), staleTime: REREAD_MS });
export const progressQuery = (org_id: string, queue_id: string) =>
  queryOptions({ ...apiQuery(org_id, `${ONE}/progress`, { path: { queue_id } }), refetchInterval: REREAD_MS });
export const itemsQuery = (org_id: string, queue_id: string, state: ItemState, limit: number) =>
  queryOptions(apiQuery(org_id, `${ONE}/items`, { path: { queue_id }, query: { state, limit } }));

/** Leases the next items. */
export const leaseItems = (org_id: string, queue_id: string, item_id: string | null) =>
  send(org_id, 'post', `${ONE}/next`, {
    params: { path: { queue_id } },
    body: { count: AHEAD, ...(item_id === null ? {} : { item_id }) },
  });

export const answerItem = (
  org_id: string,
  queue_id: string,
  item_id: string,
  body: { scores: Values; comment: string; skip: boolean },
) => send(org_id, 'post', ITEM, { params: { path: { queue_id, item_id } }, body });

export const undoItem = (org_id: string, queue_id: string, item_id: string) =>
  send(org_id, 'post', `${ITEM}/undo`, { params: { path: { queue_id, item_id } } });

type NewQueue = Pick<Queue, 'name' | 'instructions' | 'mode' | 'scores' | 'people_per_item'>;
export const createQueue = (org_id: string, body: NewQueue, idempotencyKey: string) =>
  send(org_id, 'post', ROOT, { body, idempotencyKey });

/** Changes what people read in a queue, and how many answer each item. */
export const changeQueue = (
  org_id: string,
  queue_id: string,
  body: Pick<Queue, 'name' | 'instructions' | 'people_per_item'>,
) => send(org_id, 'patch', ONE, { params: { path: { queue_id } }, body });

export const deleteQueue = (org_id: string, queue_id: string) =>
  deleteThing(queryClient, queue_id, () => send(org_id, 'delete', ONE, { params: { path: { queue_id } } }));

/** Traces to add: by id, or a share of those that a list shows. */
export type Addition = { trace_ids: string[] } | { query: string; share: number; limit: number };
export const addToQueue = (org_id: string, queue_id: string, added: Addition, idempotencyKey: string) =>
  send(org_id, 'post', `${ONE}/items`, {
    params: { path: { queue_id } },
    body: { share: 1, limit: 1000, ...added },
    idempotencyKey,
  });

/** Reads everything about queues again that is on the screen. @param deleted queue that exists no more */
export function rereadQueues(org_id: string, deleted: string | null = null): void {
  void queryClient.invalidateQueries({
    predicate: ({ queryKey }) => {
      const [of, path] = queryKey;
      return of === org_id && typeof path === 'string' && path.startsWith(ROOT) && !namesThing(queryKey, deleted);
    },
  });
}
