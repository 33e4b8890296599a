// Routes of annotation queues: create, list, get, change, delete; add items.
import { z } from 'zod';
import { pageQuery } from '../../http/list_pages.ts';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { type AddDeps, addItems } from './add.ts';
import { annotationWorkRoutes } from './item_routes.ts';
import type { ProgressDeps } from './progress.ts';
import { changeQueue, createQueue, deleteQueue, getQueue, listQueues, queueItemOf, type QueuesDeps } from './queues.ts';
import { addBody, addedItems, createBody, deletedQueue, patchBody, queueItem, queueParams } from './schema.ts';
import type { WorkDeps } from './work.ts';

const TAG = 'Annotation';
const ROOT = '/v1/annotation-queues';
const ONE = `${ROOT}/:queue_id`;

type AnnotationDeps = AddDeps & ProgressDeps & WorkDeps;

export function annotationRoutes(deps: AnnotationDeps): Route[] {
  return [
    createQueueRoute(deps),
    listQueuesRoute(deps),
    getQueueRoute(deps),
    changeQueueRoute(deps),
    deleteQueueRoute(deps),
    addItemsRoute(deps),
    ...annotationWorkRoutes(deps),
  ];
}

function createQueueRoute(deps: QueuesDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createAnnotationQueue',
    summary: 'Create an annotation queue',
    description:
      'Creates a queue in which people score traces. Everybody who may read traces sees it. The scores of a queue cannot be changed later. An organization can have at most 50 queues; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'judges:write',
    audit: { action: 'annotation_queue.create', target: 'annotation_queue' },
    body: createBody,
    example: {
      name: 'Refund answers',
      instructions: 'Is the answer correct by the refund policy?',
      scores: [{ name: 'correct', type: 'categorical', options: ['yes', 'partly', 'no'] }],
      people_per_item: 2,
    },
    status: 201,
    response: queueItem,
    errors: ['conflict'],
    handler: async ({ credential, body, audit }) => {
      const queue = await createQueue(deps, credential, body);
      audit.target(queue.queue_id);
      audit.changes({ name: queue.name, mode: queue.mode, people_per_item: queue.people_per_item });
      return { data: queueItemOf(deps, queue) };
    },
  });
}

function listQueuesRoute(deps: QueuesDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listAnnotationQueues',
    summary: 'List annotation queues',
    description: 'Returns the queues of the organization by name, with how far each is.',
    tag: TAG,
    permission: 'traces:read',
    query: pageQuery,
    response: z.array(queueItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => listQueues(deps, org_id, query),
  });
}

function getQueueRoute(deps: QueuesDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getAnnotationQueue',
    summary: 'Get an annotation queue',
    tag: TAG,
    permission: 'traces:read',
    params: queueParams,
    response: queueItem,
    errors: ['not_found'],
    handler: ({ org_id, params }) => ({ data: queueItemOf(deps, getQueue(deps, org_id, params.queue_id)) }),
  });
}

function changeQueueRoute(deps: QueuesDeps): Route {
  return defineRoute({
    method: 'patch',
    path: ONE,
    operation_id: 'changeAnnotationQueue',
    summary: 'Update an annotation queue',
    description:
      'Changes the fields that are given. With more people per item, items that were done wait for further answers.',
    tag: TAG,
    permission: 'judges:write',
    audit: { action: 'annotation_queue.update', target: 'annotation_queue', param: 'queue_id' },
    params: queueParams,
    body: patchBody,
    example: { people_per_item: 2 },
    response: queueItem,
    errors: ['not_found'],
    handler: async ({ org_id, params, body, audit }) => {
      const { queue, changes } = await changeQueue(deps, org_id, params.queue_id, body);
      audit.changes(changes);
      return { data: queueItemOf(deps, queue) };
    },
  });
}

function deleteQueueRoute(deps: QueuesDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteAnnotationQueue',
    summary: 'Delete an annotation queue',
    description: 'Deletes the queue and its items. The scores that were given in it stay.',
    tag: TAG,
    permission: 'judges:write',
    audit: { action: 'annotation_queue.delete', target: 'annotation_queue', param: 'queue_id' },
    params: queueParams,
    response: deletedQueue,
    errors: ['not_found', 'conflict'],
    handler: async ({ org_id, params: { queue_id } }) => {
      await deleteQueue(deps, org_id, queue_id);
      return { data: { queue_id, deleted: true as const } };
    },
  });
}

function addItemsRoute(deps: AddDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/items`,
    operation_id: 'addAnnotationItems',
    summary: 'Add traces to an annotation queue',
    description:
      'Adds traces by id, or the newest traces of a list query, or a share of them. A trace that the queue has is not added again. A pairwise queue pairs the given ids in their order, and the traces of a query by agent and name of the root span. A queue has at most 5,000 items, and the queues of an organization 20,000 items and 16 MiB together; past that, the request fails with 409 `conflict` and adds nothing.',
    tag: TAG,
    permission: 'judges:write',
    audit: { action: 'annotation_queue.add_items', target: 'annotation_queue', param: 'queue_id' },
    params: queueParams,
    body: addBody,
    example: { query: 'outcome=error&agent_id=planner', share: 0.1, limit: 200 },
    response: addedItems,
    errors: ['not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params: { queue_id }, body, audit, signal }) => {
      const counts = await addItems(deps, org_id, queue_id, body, signal);
      if (counts.added === 0) audit.nothing();
      else audit.changes({ added: counts.added });
      return { data: { queue_id, ...counts } };
    },
  });
}
