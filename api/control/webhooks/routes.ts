// Routes of webhook endpoints, their delivery attempts and their dead letters.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { TEST_EVENT } from '../../../schemas/events/catalog.ts';
import { fromTo } from '../../http/changes.ts';
import { pageMeta, pageMetaOf } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf, pageQuery } from '../../http/list_pages.ts';
import { defineRoute, type Route } from '../../http/route.ts';
import { listDeliveries } from './deliveries.ts';
import {
  createBody,
  createdWebhook,
  deletedWebhook,
  deliveriesQuery,
  deliveryItem,
  letterItem,
  letterParams,
  lettersQuery,
  patchBody,
  queuedTest,
  replayBody,
  replayed,
  replayedEndpoint,
  rotateBody,
  rotatedSecret,
  statsQuery,
  webhookItem,
  webhookParams,
  webhookStats,
} from './schema.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  itemOf,
  listLetters,
  replayEndpoint,
  replayLetters,
  rotateSecret,
  sendTest,
  type WebhooksDeps,
} from './webhooks.ts';
import { webhookStatsOf } from './stats.ts';

const TAG = 'Webhooks';
const ROOT = '/orgs/:org_id/webhooks';
const ONE = `${ROOT}/:webhook_id`;

export function webhookRoutes(deps: WebhooksDeps & { clickhouse: ClickHouse }): Route[] {
  return [
    listWebhookDeadLettersRoute(deps),
    replayWebhookDeadLetterRoute(deps),
    getWebhookStatsRoute(deps),
    replayWebhookRoute(deps),
    createWebhookRoute(deps),
    listWebhooksRoute(deps),
    getWebhookRoute(deps),
    changeWebhookRoute(deps),
    deleteWebhookRoute(deps),
    rotateWebhookSecretRoute(deps),
    testWebhookRoute(deps),
    listWebhookDeliveriesRoute(deps),
  ];
}

function listWebhookDeadLettersRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'get',
    path: `${ROOT}/dead-letters`,
    operation_id: 'listWebhookDeadLetters',
    summary: 'List webhook dead letters',
    description:
      'Returns the events whose delivery was given up, newest first. They are kept for 30 days, and at most the newest 10,000 of an organization.',
    tag: TAG,
    permission: 'webhooks:read',
    params: orgParams,
    query: lettersQuery,
    response: z.array(letterItem),
    meta: pageMeta,
    handler: async ({ org_id, query }) => {
      const { limit, offset } = query;
      const { items, total } = await listLetters(deps, org_id, query);
      return { data: items, meta: pageMetaOf(total, limit, offset) };
    },
  });
}

function replayWebhookDeadLetterRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ROOT}/dead-letters/:event_id/replay`,
    operation_id: 'replayWebhookDeadLetter',
    summary: 'Replay a webhook dead letter',
    description:
      'Sends the original payload again under the same `X-Service-Event-Id`, with retries for up to 24 hours. Returns 409 `conflict` if every endpoint of the event is disabled or deleted, or if the event is too large to send.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.replay', target: 'webhook' },
    params: letterParams,
    body: replayBody,
    response: replayed,
    errors: ['not_found', 'conflict'],
    handler: async ({ org_id, params, body, audit }) => {
      const { event_id } = params;
      const webhook_ids = await replayLetters(deps, org_id, event_id, body.webhook_id);
      audit.target(webhook_ids[0] ?? '');
      audit.changes({ event_id, webhook_ids });
      return { data: { event_id, replayed: webhook_ids.length, webhook_ids } };
    },
  });
}

function replayWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/dead-letters/replay`,
    operation_id: 'replayWebhookDeadLetters',
    summary: 'Replay the dead letters of an endpoint',
    description:
      'Sends up to 200 dead letters of the endpoint again, the oldest first, each under its `X-Service-Event-Id` and with retries for up to 24 hours. Repeat the request while `remaining` is above 0. Events that are too large to send stay. Returns 409 `conflict` while the endpoint is disabled.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.replay', target: 'webhook', param: 'webhook_id' },
    params: webhookParams,
    response: replayedEndpoint,
    errors: ['webhook_not_found', 'conflict', 'upstream_unavailable'],
    handler: async ({ org_id, params, audit }) => {
      const { webhook_id } = params;
      const { replayed, remaining } = await replayEndpoint(deps, org_id, webhook_id);
      if (replayed === 0) audit.nothing();
      else audit.changes({ replayed });
      return { data: { webhook_id, replayed, remaining } };
    },
  });
}

function getWebhookStatsRoute(deps: WebhooksDeps & { clickhouse: ClickHouse }): Route {
  return defineRoute({
    method: 'get',
    path: `${ROOT}/stats`,
    operation_id: 'getWebhookStats',
    summary: 'Get the statistics of webhook endpoints',
    description:
      'Returns for each endpoint the deliveries that ended in the last days, with their success rate, those that wait now, and the dead letters that are kept.',
    tag: TAG,
    permission: 'webhooks:read',
    params: orgParams,
    query: statsQuery,
    response: z.array(webhookStats),
    errors: ['upstream_unavailable'],
    handler: async ({ org_id, query, signal }) => ({
      data: await webhookStatsOf(deps, org_id, query.days, signal),
    }),
  });
}

function createWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'post',
    path: ROOT,
    operation_id: 'createWebhook',
    summary: 'Create a webhook endpoint',
    description:
      '`secret` is shown in this response only; without one in the request, the service generates it. The section on webhooks of this document describes deliveries and signatures. An organization can have at most 2,000 endpoints; past that, the request fails with 409 `conflict`.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.create', target: 'webhook' },
    params: orgParams,
    body: createBody,
    example: {
      url: 'https://example.com/hooks',
      events: ['trace.completed', 'cost.anomaly'],
      description: 'ops channel',
    },
    status: 201,
    response: createdWebhook,
    secret: true,
    errors: ['conflict'],
    handler: async ({ org_id, body, audit }) => {
      const { record, secret } = await createWebhook(deps, org_id, body);
      audit.target(record.webhook_id);
      audit.changes({ host: new URL(record.url).host, events: record.events, enabled: record.enabled });
      return { data: { ...itemOf(record), secret } };
    },
  });
}

function listWebhooksRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'get',
    path: ROOT,
    operation_id: 'listWebhooks',
    summary: 'List webhook endpoints',
    description: 'Returns the endpoints of the organization, newest first, without their secrets.',
    tag: TAG,
    permission: 'webhooks:read',
    params: orgParams,
    query: pageQuery,
    response: z.array(webhookItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => {
      const { data, meta } = pageOf(deps.store.list(org_id), query);
      return { data: data.map(itemOf), meta };
    },
  });
}

function getWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'get',
    path: ONE,
    operation_id: 'getWebhook',
    summary: 'Get a webhook endpoint',
    description: 'Returns one endpoint without its secret.',
    tag: TAG,
    permission: 'webhooks:read',
    params: webhookParams,
    response: webhookItem,
    errors: ['webhook_not_found'],
    handler: ({ org_id, params }) => ({ data: itemOf(getWebhook(deps, org_id, params.webhook_id)) }),
  });
}

function changeWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'patch',
    path: ONE,
    operation_id: 'changeWebhook',
    summary: 'Update a webhook endpoint',
    description:
      'Changes the fields that are given. Events that happen while an endpoint is disabled are not delivered to it later, and deliveries that are waiting for it are dropped.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.update', target: 'webhook', param: 'webhook_id' },
    params: webhookParams,
    body: patchBody,
    example: { enabled: false },
    response: webhookItem,
    errors: ['webhook_not_found'],
    handler: async ({ org_id, params, body, audit }) => {
      const { before, after } = await changeWebhook(deps, org_id, params.webhook_id, body);
      audit.changes(fromTo(before, after, ['enabled', 'events', 'description']));
      return { data: itemOf(after) };
    },
  });
}

function deleteWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'delete',
    path: ONE,
    operation_id: 'deleteWebhook',
    summary: 'Delete a webhook endpoint',
    description: 'Deletes the endpoint, its pending deliveries and its dead letters.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.delete', target: 'webhook', param: 'webhook_id' },
    params: webhookParams,
    response: deletedWebhook,
    errors: ['webhook_not_found'],
    handler: async ({ org_id, params }) => {
      await deleteWebhook(deps, org_id, params.webhook_id);
      return { data: { webhook_id: params.webhook_id, deleted: true as const } };
    },
  });
}

function rotateWebhookSecretRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/secrets`,
    operation_id: 'rotateWebhookSecret',
    summary: 'Rotate a webhook secret',
    description:
      'For 24 hours, `X-Service-Signature` carries one `v1` for each live secret, the newest first, so that a receiver can switch without rejecting deliveries. The secret is shown in this response only; without one in the request, the service generates it.',
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.rotate_secret', target: 'webhook', param: 'webhook_id' },
    params: webhookParams,
    body: rotateBody,
    status: 201,
    response: rotatedSecret,
    secret: true,
    errors: ['webhook_not_found'],
    handler: async ({ org_id, params, body }) => {
      const { webhook_id } = params;
      return { data: { webhook_id, ...(await rotateSecret(deps, org_id, webhook_id, body.secret)) } };
    },
  });
}

function testWebhookRoute(deps: WebhooksDeps): Route {
  return defineRoute({
    method: 'post',
    path: `${ONE}/test`,
    operation_id: 'testWebhook',
    summary: 'Send a test event',
    description: `Queues a delivery of ${TEST_EVENT}, whatever the endpoint subscribes to. The result is in the deliveries of the endpoint. Returns 409 conflict if the endpoint is disabled.`,
    tag: TAG,
    permission: 'integrations:write',
    audit: { action: 'webhook.test', target: 'webhook', param: 'webhook_id' },
    params: webhookParams,
    response: queuedTest,
    errors: ['webhook_not_found', 'conflict'],
    handler: async ({ org_id, params, audit }) => {
      const { webhook_id } = params;
      const event_id = await sendTest(deps, org_id, webhook_id);
      audit.changes({ event_id });
      return { data: { webhook_id, event_id, event: TEST_EVENT, queued: true as const } };
    },
  });
}

function listWebhookDeliveriesRoute(deps: WebhooksDeps & { clickhouse: ClickHouse }): Route {
  return defineRoute({
    method: 'get',
    path: `${ONE}/deliveries`,
    operation_id: 'listWebhookDeliveries',
    summary: 'List webhook delivery attempts',
    description:
      'Returns the delivery attempts to an endpoint in the last 30 days, newest first. An attempt appears within seconds.',
    tag: TAG,
    permission: 'webhooks:read',
    params: webhookParams,
    query: deliveriesQuery,
    response: z.array(deliveryItem),
    meta: pageMeta,
    errors: ['webhook_not_found'],
    handler: async ({ org_id, params, query, signal }) => {
      const { webhook_id } = getWebhook(deps, org_id, params.webhook_id);
      const { limit, offset } = query;
      const { items, total } = await listDeliveries(deps.clickhouse, { org_id: org_id, webhook_id, ...query }, signal);
      return { data: items, meta: pageMetaOf(total, limit, offset) };
    },
  });
}
