// Shape of the record of an API key in KV, and the scopes that a key can have.
import { z } from 'zod';
import { LIMIT_MAX, usdLimit } from './budget.ts';

/** Every scope that an API key can have; `*` means all of them. */
export const SCOPES = [
  '*',
  'ingest:write',
  'ingest:backfill',
  'traces:read',
  'traces:export',
  'costs:read',
  'budgets:write',
  'judges:read',
  'judges:write',
  'datasets:read',
  'datasets:write',
  'prompts:read',
  'prompts:write',
  'agents:read',
  'agents:write',
  'webhooks:read',
  'webhooks:write',
  'retention:read',
  'org:read',
  'org:write',
  'gateway:invoke',
  'references:read',
  'references:write',
  'references:upload',
  'references:delete',
  'jobs:read',
  'jobs:write',
] as const;
export type Scope = (typeof SCOPES)[number];

const MODELS_MAX = 100;
const MODEL_LENGTH_MAX = 256;
const LABEL_LENGTH_MAX = 512;
const RATE_MAX = 1e12;

const rate = z.int().min(1).max(RATE_MAX);
export const KEY_PERIODS = ['day', 'week', 'month'] as const;

const wholeLimit = z
  .int({ error: `must be a whole number from 0 to ${LIMIT_MAX}` })
  .min(0)
  .max(LIMIT_MAX);
const keyBudget = z
  .discriminatedUnion('resource', [
    z.strictObject({ resource: z.literal('cost_usd'), hard_limit: usdLimit, period: z.enum(KEY_PERIODS) }),
    z.strictObject({ resource: z.literal('tokens'), hard_limit: wholeLimit, period: z.enum(KEY_PERIODS) }),
  ])
  .meta({ id: 'ApiKeyBudget' });

const labelText = z.string().min(1).max(LABEL_LENGTH_MAX).nullable();
const keyLabels = z.strictObject({ user_id: labelText.default(null), department: labelText.default(null) });

/** What limits an API key; null for no limit. */
export const keyLimits = z.object({
  models: z
    .array(z.string().min(1).max(MODEL_LENGTH_MAX))
    .min(1)
    .max(MODELS_MAX)
    .nullable()
    .describe('Globs of the models that the key may name, such as gpt-4o*; null for every model'),
  requests_per_minute: rate.nullable().describe('Requests within any 60 seconds, reads included'),
  tokens_per_minute: rate.nullable().describe('Tokens of ingested events and of calls within any 60 seconds'),
  budget: keyBudget.nullable().describe('What the key may use in a day, week (from Monday) or month (UTC)'),
  expires_at: z.iso.datetime().nullable().describe('From then on the key is rejected'),
  labels: keyLabels.nullable().describe('User and department of events that the key sends and that name none'),
});
export type KeyLimits = z.infer<typeof keyLimits>;

export const NO_KEY_LIMITS: KeyLimits = Object.freeze({
  models: null,
  requests_per_minute: null,
  tokens_per_minute: null,
  budget: null,
  expires_at: null,
  labels: null,
});
/** What the gateway stores of a call: all of it, or who called which model and what it used. */
export const CAPTURE_MODES = ['full', 'usage'] as const;
export type CaptureMode = (typeof CAPTURE_MODES)[number];

/** An API key as stored, keyed by the SHA-256 of its raw text. */
export const keyRecord = z.object({
  id: z.string(),
  org_id: z.string(),
  name: z.string(),
  key_prefix: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  created_at: z.iso.datetime(),
  /**
   * The member to whom the key belongs, and joined_at of their membership. Null for a key that the operator or the
   * bootstrap made, and for keys stored before keys had makers: no member's role caps these.
   */
  created_by: z.object({ user_id: z.string(), member_since: z.string() }).nullable().default(null),
  /** Keys stored before keys had limits have none of these. */
  models: keyLimits.shape.models.default(null),
  requests_per_minute: keyLimits.shape.requests_per_minute.default(null),
  tokens_per_minute: keyLimits.shape.tokens_per_minute.default(null),
  budget: keyLimits.shape.budget.default(null),
  expires_at: keyLimits.shape.expires_at.default(null),
  labels: keyLimits.shape.labels.default(null),
  capture: z
    .enum(CAPTURE_MODES)
    .optional()
    .describe('usage: the gateway stores no prompt, response or attribute values of calls with the key'),
});
export type KeyRecord = z.infer<typeof keyRecord>;

/** Returns what limits a key; null for a key without any limit or label. */
export function limitsOfKey(record: KeyLimits): KeyLimits | null {
  const { models, requests_per_minute, tokens_per_minute, budget, expires_at, labels } = record;
  const limits = { models, requests_per_minute, tokens_per_minute, budget, expires_at, labels };
  return Object.values(limits).every((value) => value === null) ? null : limits;
}
