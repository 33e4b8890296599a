// Request and response shapes of webhook endpoints, delivery attempts and dead letters.
import { z } from 'zod';
import { EVENT_CATALOG, eventNamed, TEST_EVENT } from '../../../schemas/events/catalog.ts';
import { DEAD_DELIVERY_REASONS } from '../../../schemas/records/webhook.ts';
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
    context.addIssue({
      code: 'custom',
      message: `${JSON.stringify(name.slice(0, 64))} is not an event of the catalog`,
    });
    return z.NEVER;
  })
  .meta({ enum: [...NAMES, 'cost_anomaly'] });
const events = z
  .array(eventName)
  .min(1, { error: 'must have at least one event of the catalog' })
  .max(2 * NAMES.length)
  .transform((names) => [...new Set(names)])
  .meta({ description: 'Events of the catalog. cost_anomaly is accepted for cost.anomaly' });
const description = z.string().max(DESCRIPTION_CHARS_MAX);
const secret = z
  .string()
  .min(1)
  .max(SECRET_CHARS_MAX)
  .regex(/^[\x21-\x7e]+$/, { error: 'must be letters, digits and signs of ASCII, without spaces' })
  .describe('Key that signs the deliveries (HMAC-SHA256). Generated if left out');

export const createBody = z.strictObject({
  url: z.string().max(URL_CHARS_MAX).describe('https address; http only for localhost and 127.0.0.1 in development'),
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
  event_id: z.string().regex(/^[A-Za-z0-9_=-]{1,128}$/, { error: 'must be the id of an event' }),
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

const shownOnce = z.string().describe('Shown in this response only');
export const createdWebhook = webhookItem.extend({ secret: shownOnce });
export const rotatedSecret = z.object({
  webhook_id: z.string(),
  secret: shownOnce,
  created_at: z.iso.datetime(),
  previous_expires_at: z.iso.datetime().describe('Until then, deliveries are also signed with the previous secrets'),
});
export const deletedWebhook = z.object({ webhook_id: z.string(), deleted: z.literal(true) });
export const queuedTest = z.object({
  webhook_id: z.string(),
  event_id: z.string().describe('Id of the event in the deliveries of the endpoint'),
  event: z.literal(TEST_EVENT),
  queued: z.literal(true),
});

const OUTCOMES = ['delivered', 'failed', 'retrying', 'dead-lettered'] as const;
export const deliveriesQuery = z.object({
  ...offsetQuery,
  event_id: z.string().min(1).optional(),
  event: z.string().min(1).optional().describe('Name of the event'),
  outcome: z.enum(OUTCOMES).optional(),
});
export const deliveryItem = z.object({
  event_id: z.string(),
  event: z.string(),
  attempt: z.int().describe('X-Service-Attempt, from 0'),
  outcome: z.enum(OUTCOMES).describe('Outcome of the delivery with this attempt'),
  status_code: z.int().nullable().describe('null if there was no response'),
  error: z.string().nullable().describe('Why there was no response'),
  duration_ms: z.int(),
  at: z.iso.datetime(),
});
export type DeliveryItem = z.infer<typeof deliveryItem>;

/** Longest time of the statistics, in days: attempts are kept for as long. */
const STATS_DAYS_MAX = 30;
const STATS_DAYS_DEFAULT = 7;
const DAYS_RULE = { error: `must be an integer between 1 and ${STATS_DAYS_MAX}` };
export const statsQuery = z.object({
  days: z
    .string()
    .regex(/^\d{1,2}$/, DAYS_RULE)
    .transform(Number)
    .pipe(z.int().min(1, DAYS_RULE).max(STATS_DAYS_MAX, DAYS_RULE))
    .default(STATS_DAYS_DEFAULT)
    .meta({
      type: 'integer',
      minimum: 1,
      maximum: STATS_DAYS_MAX,
      default: STATS_DAYS_DEFAULT,
      description: 'Days up to now',
    }),
});
const counted = z.int().min(0);
export const webhookStats = z
  .object({
    webhook_id: z.string(),
    attempts: counted,
    delivered: counted.describe('Deliveries that a receiver accepted'),
    failed: counted.describe('Deliveries that ended with a final answer other than 2xx'),
    dead_lettered: counted.describe('Deliveries that were given up'),
    success_rate: z.number().min(0).max(1).nullable().describe('Share of the ended deliveries; null without one'),
    last_attempt_at: z.iso.datetime().nullable(),
    waiting: counted.describe('Deliveries that wait now for their first attempt or a retry'),
    dead_letters: counted.describe('Dead letters that are kept now'),
  })
  .meta({ id: 'WebhookStats' });
export type WebhookStats = z.infer<typeof webhookStats>;

export const replayedEndpoint = z.object({
  webhook_id: z.string(),
  replayed: counted,
  remaining: counted.describe('Dead letters of the endpoint that are left, which a further request replays'),
});
export const lettersQuery = z.object({ ...offsetQuery, webhook_id: z.string().min(1).optional() });
export const letterItem = z.object({
  event_id: z.string(),
  webhook_id: z.string(),
  event: z.string(),
  reason: z
    .enum(DEAD_DELIVERY_REASONS)
    .describe(
      'expired: the delivery failed for 24 hours. backlog: too many deliveries waited for this endpoint. too_large: the event exceeds the maximum size of a delivery',
    ),
  attempts: z.int(),
  status_code: z.int().nullable().describe('Status of the last attempt; null if there was no response'),
  error: z.string().nullable(),
  payload: z.record(z.string(), z.unknown()).describe('Payload that a replay sends again, byte for byte'),
  created_at: z.iso.datetime().describe('When the event happened'),
  died_at: z.iso.datetime(),
});
export type LetterItem = z.infer<typeof letterItem>;
export const replayBody = z.strictObject({
  webhook_id: z
    .string()
    .optional()
    .describe('Endpoint to send to. Defaults to every endpoint that has a dead letter of the event'),
});
export const replayed = z.object({ event_id: z.string(), replayed: z.int(), webhook_ids: z.array(z.string()) });
