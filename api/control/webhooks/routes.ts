// Routes of webhook endpoints, their attempt logs and dead letters.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { TEST_EVENT } from '../../../schemas/events/catalog.ts';
import { fromTo } from '../../http/changes.ts';
import { pageMeta, pageMetaOf } from '../../http/pagination.ts';
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
  listQuery,
  orgParams,
  patchBody,
  queuedTest,
  replayBody,
  replayed,
  rotateBody,
  rotatedSecret,
  webhookItem,
  webhookParams,
} from './schema.ts';
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  getWebhook,
  itemOf,
  listLetters,
  replayLetters,
  rotateSecret,
  sendTest,
  type WebhooksDeps,
} from './webhooks.ts';

const TAG = 'Webhooks';
const ROOT = '/orgs/:org_id/webhooks';
const ONE = `${ROOT}/:webhook_id`;

export function webhookRoutes(deps: WebhooksDeps & { clickhouse: ClickHouse }): Route[] {
  return [...deadLetterRoutes(deps), ...endpointRoutes(deps), ...deliveryRoutes(deps)];
}

function endpointRoutes(deps: WebhooksDeps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: ROOT,
      operation_id: 'createWebhook',
      summary: 'Make a webhook endpoint',
      description:
        'secret is shown in this answer and never again. Deliveries are described under webhooks of this document.',
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.create', target: 'webhook' },
      status: 201,
      secret: true,
      params: orgParams,
      body: createBody,
      example: {
        url: 'https://example.com/hooks',
        events: ['trace.completed', 'cost.anomaly'],
        description: 'ops channel',
      },
      response: createdWebhook,
      errors: ['conflict'],
      handler: async (ctx) => {
        const { record, secret } = await createWebhook(deps, ctx.org_id, ctx.body);
        ctx.audit.target(record.webhook_id);
        ctx.audit.changes({ host: new URL(record.url).host, events: record.events, enabled: record.enabled });
        return { data: { ...itemOf(record), secret } };
      },
    }),
    defineRoute({
      method: 'get',
      path: ROOT,
      operation_id: 'listWebhooks',
      summary: 'Webhook endpoints of the org, newest first; never their secrets',
      tag: TAG,
      permission: 'webhooks:read',
      params: orgParams,
      query: listQuery,
      response: z.array(webhookItem),
      meta: pageMeta,
      handler: (ctx) => {
        const { limit, offset } = ctx.query;
        const records = deps.store.list(ctx.org_id);
        const data = records.slice(offset, offset + limit).map(itemOf);
        return { data, meta: pageMetaOf(records.length, limit, offset) };
      },
    }),
    defineRoute({
      method: 'get',
      path: ONE,
      operation_id: 'getWebhook',
      summary: 'One webhook endpoint',
      tag: TAG,
      permission: 'webhooks:read',
      params: webhookParams,
      response: webhookItem,
      errors: ['webhook_not_found'],
      handler: (ctx) => ({ data: itemOf(getWebhook(deps, ctx.org_id, ctx.params.webhook_id)) }),
    }),
    defineRoute({
      method: 'patch',
      path: ONE,
      operation_id: 'changeWebhook',
      summary: 'Enable, disable, subscribe anew or describe an endpoint',
      description:
        'What happens while an endpoint is disabled is not delivered to it later, and what waits for it is dropped.',
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.update', target: 'webhook', param: 'webhook_id' },
      params: webhookParams,
      body: patchBody,
      example: { enabled: false },
      response: webhookItem,
      errors: ['webhook_not_found'],
      handler: async (ctx) => {
        const { before, after } = await changeWebhook(deps, ctx.org_id, ctx.params.webhook_id, ctx.body);
        ctx.audit.changes(fromTo(before, after, ['enabled', 'events', 'description']));
        return { data: itemOf(after) };
      },
    }),
    defineRoute({
      method: 'delete',
      path: ONE,
      operation_id: 'deleteWebhook',
      summary: 'Delete an endpoint, with all that waits for it',
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.delete', target: 'webhook', param: 'webhook_id' },
      params: webhookParams,
      response: deletedWebhook,
      errors: ['webhook_not_found'],
      handler: async (ctx) => {
        await deleteWebhook(deps, ctx.org_id, ctx.params.webhook_id);
        return { data: { webhook_id: ctx.params.webhook_id, deleted: true as const } };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${ONE}/secrets`,
      operation_id: 'rotateWebhookSecret',
      summary: 'Give an endpoint a new secret',
      description:
        'For 24 hours deliveries carry one v1 in X-Service-Signature for each live secret, the newest first, so that a receiver can change over without refusing anything.',
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.rotate_secret', target: 'webhook', param: 'webhook_id' },
      status: 201,
      secret: true,
      params: webhookParams,
      body: rotateBody,
      response: rotatedSecret,
      errors: ['webhook_not_found'],
      handler: async (ctx) => {
        const { webhook_id } = ctx.params;
        return { data: { webhook_id, ...(await rotateSecret(deps, ctx.org_id, webhook_id, ctx.body.secret)) } };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${ONE}/test`,
      operation_id: 'testWebhook',
      summary: 'Send a test event to an endpoint',
      description: `A delivery of ${TEST_EVENT}, whatever the endpoint subscribes to. How it went is in its deliveries.`,
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.test', target: 'webhook', param: 'webhook_id' },
      params: webhookParams,
      response: queuedTest,
      errors: ['webhook_not_found', 'conflict'],
      handler: async (ctx) => {
        const { webhook_id } = ctx.params;
        const event_id = await sendTest(deps, ctx.org_id, webhook_id);
        ctx.audit.changes({ event_id });
        return { data: { webhook_id, event_id, event: TEST_EVENT, queued: true as const } };
      },
    }),
  ];
}

function deliveryRoutes(deps: WebhooksDeps & { clickhouse: ClickHouse }): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: `${ONE}/deliveries`,
      operation_id: 'listWebhookDeliveries',
      summary: 'Attempt log of an endpoint, newest first',
      description: 'Of the last 30 days; a try shows some seconds after it was made.',
      tag: TAG,
      permission: 'webhooks:read',
      params: webhookParams,
      query: deliveriesQuery,
      response: z.array(deliveryItem),
      meta: pageMeta,
      errors: ['webhook_not_found'],
      handler: async (ctx) => {
        const { webhook_id } = getWebhook(deps, ctx.org_id, ctx.params.webhook_id);
        const { limit, offset } = ctx.query;
        const { items, total } = await listDeliveries(
          deps.clickhouse,
          { org_id: ctx.org_id, webhook_id, ...ctx.query },
          ctx.signal,
        );
        return { data: items, meta: pageMetaOf(total, limit, offset) };
      },
    }),
  ];
}

function deadLetterRoutes(deps: WebhooksDeps): Route[] {
  return [
    defineRoute({
      method: 'get',
      path: `${ROOT}/dead-letters`,
      operation_id: 'listWebhookDeadLetters',
      summary: 'Events that were given up, newest first',
      description: 'Kept for 30 days; of an org that has more than 10,000 the newest.',
      tag: TAG,
      permission: 'webhooks:read',
      params: orgParams,
      query: lettersQuery,
      response: z.array(letterItem),
      meta: pageMeta,
      handler: async (ctx) => {
        const { limit, offset } = ctx.query;
        const { items, total } = await listLetters(deps, ctx.org_id, ctx.query);
        return { data: items, meta: pageMetaOf(total, limit, offset) };
      },
    }),
    defineRoute({
      method: 'post',
      path: `${ROOT}/dead-letters/:event_id/replay`,
      operation_id: 'replayWebhookDeadLetter',
      summary: 'Send an event again that was given up',
      description: 'The original payload under the same X-Service-Event-Id, tried anew for up to 24 hours.',
      tag: TAG,
      permission: 'integrations:write',
      audit: { action: 'webhook.replay', target: 'webhook' },
      params: letterParams,
      body: replayBody,
      response: replayed,
      errors: ['not_found', 'conflict'],
      handler: async (ctx) => {
        const { event_id } = ctx.params;
        const webhook_ids = await replayLetters(deps, ctx.org_id, event_id, ctx.body.webhook_id);
        ctx.audit.target(webhook_ids[0] ?? '');
        ctx.audit.changes({ event_id, webhook_ids });
        return { data: { event_id, replayed: webhook_ids.length, webhook_ids } };
      },
    }),
  ];
}
