// Request and response shapes of API keys and their limits.
import { z } from 'zod';
import { KEY_PERIODS, keyLimits, keyRecord, SCOPES } from '../../../schemas/records/api_key.ts';

const name = z.string().trim().min(1).max(200);
const scopes = z
  .array(z.enum(SCOPES, { error: `must be scopes of this list: ${SCOPES.join(', ')}` }))
  .min(1)
  .max(SCOPES.length);

export const keyParams = z.object({ org_id: z.string(), key_id: z.string() });

export const KEY_EXAMPLE = { name: 'ci', scopes: ['ingest:write', 'traces:read'] };
export const KEY_LIMITS_EXAMPLE = {
  models: ['gpt-4o*', 'claude-*'],
  requests_per_minute: 600,
  tokens_per_minute: 200_000,
  budget: { resource: 'cost_usd', hard_limit: 25, period: 'day' },
  expires_at: '2030-01-01T00:00:00.000Z',
  labels: { user_id: 'ann@example.com', department: 'support' },
};

/** Limits in a request: what is left out stays, null clears it. */
export const givenKeyLimits = keyLimits
  .partial()
  .extend({ capture: keyRecord.shape.capture })
  .strict()
  .meta({ id: 'ApiKeyLimits' });
export type GivenKeyLimits = z.infer<typeof givenKeyLimits>;

export const createKeyBody = z.object({
  name,
  scopes,
  capture: keyRecord.shape.capture,
  ...keyLimits.partial().shape,
});
export type CreateKeyBody = z.infer<typeof createKeyBody>;

const keyUse = z
  .object({
    period: z.enum(KEY_PERIODS).describe('Period of the budget; month for a key without one'),
    period_start: z.iso.datetime(),
    period_end: z.iso.datetime(),
    tokens: z.number(),
    cost_usd: z.number(),
    percentage: z.number().describe('Use of the budget in percent; 0 without one'),
    status: z.enum(['ok', 'hard_exceeded']),
  })
  .meta({ id: 'ApiKeyUse' });
export type KeyUse = z.infer<typeof keyUse>;

/** An API key as lists show it. */
export const keyItem = keyRecord
  .omit({ org_id: true, created_by: true })
  .extend({
    ...keyLimits.shape,
    capture: keyRecord.shape.capture.unwrap(),
    created_by: z
      .string()
      .nullable()
      .describe('user_id of the member to whom the key belongs. null for a key created by the operator or the service'),
    status: z
      .enum(['active', 'capped', 'revoked', 'expired'])
      .describe(
        "capped: the role of the key's member lacks some permissions of its scopes. revoked: it lacks all of them, or the member has left, and requests with the key are rejected. expired: expires_at has passed, and requests with the key are rejected",
      ),
    use: keyUse.nullable().describe('What has landed of the use of the key; null while the store is unavailable'),
  })
  .meta({ id: 'ApiKey' });
export type KeyItem = z.infer<typeof keyItem>;

/** The only response that shows the raw key. */
export const createdKey = keyItem
  .pick({ id: true, name: true, key_prefix: true, scopes: true })
  .extend({
    raw_key: z.string().describe('Shown in this response only; the service stores its hash'),
    ...keyLimits.partial().shape,
  })
  .meta({ id: 'CreatedApiKey' });
export type CreatedKey = z.infer<typeof createdKey>;

export const deletedKey = z.object({ id: z.string(), deleted: z.literal(true) });
