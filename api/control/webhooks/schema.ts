// Shapes of the webhook endpoints' routes: what they take, and what they answer.
import { z } from 'zod';
import { EVENT_CATALOG, eventNamed, TEST_EVENT } from '../../../schemas/events/catalog.ts';
import { DEAD_REASONS } from '../../../schemas/records/webhook.ts';
import { offsetQuery } from '../../http/pagination.ts';

const DESCRIPTION_CHARS_MAX = 500;
const URL_CHARS_MAX = 2048;
const SECRET_CHARS_MAX = 256;
const NAMES = Object.keys(EVENT_CATALOG);

const eventName = z
  .string()
  .transform((name, context) => {
    const event = eventNamed(name);
    if (event !== null) return event;
    context.addIssue({ code: 'custom', message: `${JSON.stringify(name.slice(0, 64))} is no event of the catalog` });
    return z.NEVER;
  })
  .meta({ enum: [...NAMES, 'cost_anomaly'] });
const events = z
  .array(eventName)
  .min(1, { error: 'takes at least one event of the catalog' })
  .max(2 * NAMES.length)
  .transform((names) => [...new Set(names)])
  .meta({ description: 'Events of the catalog; cost_anomaly is taken as cost.anomaly' });
const description = z.string().max(DESCRIPTION_CHARS_MAX);
const secret = z
  .string()
  .min(1)
  .max(SECRET_CHARS_MAX)
  .regex(/^[\x21-\x7e]+$/, { error: 'takes letters, digits and signs of ASCII, without spaces' })
  .describe('Signs the deliveries (HMAC-SHA256); one is made where none is given');

export const createBody = z.strictObject({
  url: z.string().max(URL_CHARS_MAX).describe('https; http for localhost and 127.0.0.1 in development'),
  events,
  secret: secret.optional(),
  description: description.default(''),
  enabled: z.boolean().default(true),
});
export type CreateBody = z.output<typeof createBody>;

export const patchBody = z.strictObject({
  enabled: z.boolean().optional(),
  events: events.optional(),
  description: description.optional(),
});
export type PatchBody = z.output<typeof patchBody>;

export const rotateBody = z.strictObject({ secret: secret.optional() });

export const webhookParams = z.object({ org_id: z.string(), webhook_id: z.string() });
export const letterParams = z.object({
  org_id: z.string(),
  event_id: z.string().regex(/^[A-Za-z0-9_=-]{1,128}$/, { error: 'takes the id of an event' }),
});

export const webhookItem = z.object({
  webhook_id: z.string(),
  url: z.string(),
  events: z.array(z.string()),
  description: z.string(),
  enabled: z.boolean(),
  created_at: z.iso.datetime(),
});
export type WebhookItem = z.infer<typeof webhookItem>;

const shownOnce = z.string().describe('Shown in this answer and never again');
export const createdWebhook = webhookItem.extend({ secret: shownOnce });
export const rotatedSecret = z.object({
  webhook_id: z.string(),
  secret: shownOnce,
  created_at: z.iso.datetime(),
  previous_expires_at: z.iso
    .datetime()
    .describe('Until then deliveries are signed with the secrets before this one too'),
});
export const deletedWebhook = z.object({ webhook_id: z.string(), deleted: z.literal(true) });
export const queuedTest = z.object({
  webhook_id: z.string(),
  event_id: z.string().describe('Look for it in the deliveries of the endpoint'),
  event: z.literal(TEST_EVENT),
  queued: z.literal(true),
});

const OUTCOMES = ['delivered', 'failed', 'retrying', 'dead-lettered'] as const;
export const deliveriesQuery = z.object({
  ...offsetQuery,
  event_id: z.string().min(1).optional(),
  outcome: z.enum(OUTCOMES).optional(),
});
export const deliveryItem = z.object({
  event_id: z.string(),
  event: z.string(),
  attempt: z.int().describe('X-Service-Attempt, from 0'),
  outcome: z.enum(OUTCOMES).describe('What became of the delivery by this try'),
  status_code: z.int().nullable().describe('null where no answer came'),
  error: z.string().nullable().describe('Why none came'),
  duration_ms: z.int(),
  at: z.iso.datetime(),
});
export type DeliveryItem = z.infer<typeof deliveryItem>;

export const lettersQuery = z.object({ ...offsetQuery, webhook_id: z.string().min(1).optional() });
export const letterItem = z.object({
  event_id: z.string(),
  webhook_id: z.string(),
  event: z.string(),
  reason: z
    .enum(DEAD_REASONS)
    .describe(
      'expired: it failed for 24 hours; backlog: too many deliveries waited for this endpoint; too_large: it has more bytes than are sent',
    ),
  attempts: z.int(),
  status_code: z.int().nullable().describe('Of the last try; null where no answer came'),
  error: z.string().nullable(),
  payload: z.record(z.string(), z.unknown()).describe('What is sent again, to the byte, by a replay'),
  created_at: z.iso.datetime().describe('Of the event'),
  died_at: z.iso.datetime(),
});
export type LetterItem = z.infer<typeof letterItem>;
export const replayBody = z.strictObject({
  webhook_id: z.string().optional().describe('Left out: to every endpoint that the event was given up for'),
});
export const replayed = z.object({ event_id: z.string(), replayed: z.int(), webhook_ids: z.array(z.string()) });
