// Records of webhooks in KV: endpoints, which the API writes and every worker reads, and deliveries
// that were dead-lettered.
import { z } from 'zod';
import type { EventName } from '../events/catalog.ts';
import { eventNamed } from '../events/catalog.ts';

/** Maximum number of valid secrets: the newest, and those that are being rotated out. */
export const LIVE_SECRETS_MAX = 3;

export const webhookSecret = z.object({
  /** The secret, sealed for the organization and the endpoint; see ops/platform/sealing.ts. */
  sealed: z.string(),
  created_at: z.iso.datetime(),
  /** Time up to which the secret signs; null for the newest one. */
  expires_at: z.iso.datetime().nullable(),
});
export type WebhookSecret = z.infer<typeof webhookSecret>;

export const webhookRecord = z.object({
  webhook_id: z.string(),
  org_id: z.string(),
  url: z.string(),
  events: z.array(z.string().refine((name): name is EventName => eventNamed(name) === name)),
  description: z.string(),
  enabled: z.boolean(),
  created_at: z.iso.datetime(),
  /** Secrets, newest first. */
  secrets: z.array(webhookSecret).min(1).max(LIVE_SECRETS_MAX),
});
export type WebhookRecord = z.infer<typeof webhookRecord>;

/** Returns the sealing context of a secret of an endpoint: it opens in no other. */
export const webhookSealContext = (org_id: string, webhook_id: string): string => `webhook\n${org_id}\n${webhook_id}`;

/**
 * Why a delivery was dead-lettered: it failed for a day, its receiver's backlog was full, or it exceeds the maximum
 * size of a delivery.
 */
export const DEAD_DELIVERY_REASONS = ['expired', 'backlog', 'too_large'] as const;
export type DeadDeliveryReason = (typeof DEAD_DELIVERY_REASONS)[number];

export const deadDelivery = z.object({
  event_id: z.string(),
  event: z.string(),
  org_id: z.string(),
  target_kind: z.enum(['endpoint', 'alert']),
  target_id: z.string(),
  /** The body, byte for byte as it was sent and will be sent again. */
  body: z.string(),
  /** Milliseconds since the epoch. */
  created_at: z.int(),
  attempts: z.int().min(0),
  reason: z.enum(DEAD_DELIVERY_REASONS),
  status_code: z.int().nullable(),
  error: z.string().nullable(),
  died_at: z.iso.datetime(),
});
export type DeadDelivery = z.infer<typeof deadDelivery>;

/** Returns an id as one token of a subject or key: organization ids may contain dots. */
export const tokenOf = (id: string): string => id.replaceAll('.', '=2E');

/** Returns the key of an endpoint in its bucket. */
export const webhookKey = (org_id: string, webhook_id: string): string => `${tokenOf(org_id)}.${webhook_id}`;
