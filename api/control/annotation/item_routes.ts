// Routes of the items of annotation queues: get the next ones, answer, take an answer back; list
// what was said, and how far a queue is.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { listItems, type ProgressDeps, readProgress } from './progress.ts';
import {
  answerBody,
  answeredItem,
  itemParams,
  itemsQuery,
  leasedItem,
  nextBody,
  progressData,
  queueParams,
  workMeta,
} from './schema.ts';
import { giveAnswer, leaseNext, undoAnswer, type WorkDeps } from './work.ts';

const TAG = 'Annotation';
const ONE = '/v1/annotation-queues/:queue_id';
const ITEM = `${ONE}/items/:item_id`;

export function annotationWorkRoutes(deps: WorkDeps & ProgressDeps): Route[] {
  return [
    leaseNextRoute(deps),
    giveAnswerRoute(deps),
    undoAnswerRoute(deps),
    listItemsRoute(deps),
    readProgressRoute(deps),
  ];
}

function leaseNextRoute(deps: WorkDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/next`,
    operation_id: 'leaseAnnotationItems',
    summary: 'Get the next items of an annotation queue',
    description:
      'Leases items to the caller for 10 minutes: those that they have, then free ones in the order in which they were added. No item goes to more people than it asks for, and none to somebody who has answered or skipped it. A repeated call returns the same items and renews their leases. An empty list means that nothing is left for the caller. Also needs `traces:read`.',
    tag: TAG,
    permission: 'ingest:write',
    audit: null,
    params: queueParams,
    body: nextBody,
    example: { count: 2 },
    response: z.array(leasedItem),
    meta: workMeta,
    errors: ['not_found', 'conflict'],
    handler: ({ credential, params, body }) => leaseNext(deps, credential, params.queue_id, body),
  });
}

function giveAnswerRoute(deps: WorkDeps): Route {
  return defineRoute({
    method: 'post',
    path: ITEM,
    operation_id: 'answerAnnotationItem',
    summary: 'Answer an item of an annotation queue',
    description:
      "Stores the caller's answer, or that they skip the item. The answer becomes scores of the trace; in a pairwise queue each trace gets `win`, `loss` or `tie`. The same answer again changes nothing, and another answer replaces the first. It fails with 409 `conflict` when somebody else has the item now, and says who. Also needs `traces:read`.",
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'annotation.answer', target: 'annotation_queue', param: 'queue_id' },
    params: itemParams,
    body: answerBody,
    example: { scores: { correct: 'partly' }, comment: 'The period is missing' },
    response: leasedItem,
    meta: workMeta,
    errors: ['not_found', 'conflict'],
    handler: async ({ credential, params, body, audit }) => {
      const { changed, ...answer } = await giveAnswer(deps, credential, params, body);
      if (changed) audit.changes({ item_id: params.item_id, said: answer.data.said });
      else audit.nothing();
      return answer;
    },
  });
}

function undoAnswerRoute(deps: WorkDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ITEM}/undo`,
    operation_id: 'undoAnnotationAnswer',
    summary: 'Take back an answer in an annotation queue',
    description:
      "Deletes the caller's own answer and its scores, and leases the item to them again. Without such an answer it only leases the item. Also needs `traces:read`.",
    tag: TAG,
    permission: 'ingest:write',
    audit: { action: 'annotation.undo', target: 'annotation_queue', param: 'queue_id' },
    params: itemParams,
    response: leasedItem,
    meta: workMeta,
    errors: ['not_found', 'conflict'],
    handler: async ({ credential, params, audit }) => {
      const { changed, ...answer } = await undoAnswer(deps, credential, params);
      if (changed) audit.changes({ item_id: params.item_id });
      else audit.nothing();
      return answer;
    },
  });
}

function listItemsRoute(deps: ProgressDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/items`,
    operation_id: 'listAnnotationItems',
    summary: 'List the items of an annotation queue',
    description:
      'Returns the items in their order, with the answers of each person as far as their scores have landed.',
    tag: TAG,
    permission: 'traces:read',
    params: queueParams,
    query: itemsQuery,
    response: z.array(answeredItem),
    meta: pageMeta,
    errors: ['not_found'],
    handler: ({ org_id, params, query, signal }) => listItems(deps, org_id, params.queue_id, query, signal),
  });
}

function readProgressRoute(deps: ProgressDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/progress`,
    operation_id: 'getAnnotationProgress',
    summary: 'Get the progress of an annotation queue',
    description:
      "Returns how many items are done and left, the pace, the answers by person, what was said by score, and where several people answered one item how far they agree: the share of equal pairs of values, and Cohen's kappa.",
    tag: TAG,
    permission: 'traces:read',
    params: queueParams,
    response: progressData,
    errors: ['not_found'],
    handler: async ({ org_id, params, signal }) => ({
      data: await readProgress(deps, org_id, params.queue_id, signal),
    }),
  });
}
