// Shapes of orgs and API keys: what requests bring, what is stored in KV, what answers show.
import { z } from 'zod';
import { SCOPES } from '../http/permissions.ts';

const ORG_ID_PATTERN = /^[A-Za-z0-9_.-]{1,128}$/;
const orgId = z.string().regex(ORG_ID_PATTERN, { error: 'takes 1 to 128 of letters, digits, _ . -' });
const name = z.string().trim().min(1).max(200);
const perMinute = z.int().min(1).max(100_000_000);

const planName = z.enum(['free', 'starter', 'pro', 'enterprise']);

const rateLimits = z
  .object({ ingest_per_minute: perMinute, api_per_minute: perMinute, burst: perMinute })
  .describe('Limits of an enterprise org; null: unlimited');
const owner = z.object({ user_id: z.string().min(1).max(128), email: z.email() });
const overageBudget = z
  .number()
  .min(0)
  .max(1_000_000_000)
  .describe('What use past a hard limit may cost before ingest answers 402; null: it answers 429 at once');

/** An org, as stored and as answered. */
export const orgRecord = z
  .object({
    org_id: z.string(),
    name: z.string(),
    plan_name: planName,
    owner,
    overage_budget_usd: overageBudget.nullable(),
    rate_limits: rateLimits.nullable(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Org' });
export type OrgRecord = z.infer<typeof orgRecord>;

export const createOrgBody = z.object({
  org_id: orgId.optional(),
  name,
  plan_name: planName,
  owner,
  overage_budget_usd: overageBudget.nullish(),
  rate_limits: rateLimits.nullish(),
});
export type CreateOrgBody = z.infer<typeof createOrgBody>;

export const patchOrgBody = createOrgBody.omit({ org_id: true }).partial();
export type PatchOrgBody = z.infer<typeof patchOrgBody>;

/** Answer of the operator's mutations: the record, and the same once more under org. */
export const orgAnswer = orgRecord.extend({ org: orgRecord }).meta({ id: 'OrgAnswer' });

export const orgParams = z.object({ org_id: z.string() });
export const keyParams = z.object({ org_id: z.string(), key_id: z.string() });

const scopes = z
  .array(z.enum(SCOPES, { error: `takes scopes of this list: ${SCOPES.join(', ')}` }))
  .min(1)
  .max(SCOPES.length);

export const createKeyBody = z.object({ name, scopes });
export type CreateKeyBody = z.infer<typeof createKeyBody>;

/** An API key as stored, under the SHA-256 of its raw text. */
export const keyRecord = z.object({
  id: z.string(),
  org_id: z.string(),
  name: z.string(),
  key_prefix: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  created_at: z.iso.datetime(),
});
export type KeyRecord = z.infer<typeof keyRecord>;

/** An API key as lists show it. */
export const keyItem = keyRecord.omit({ org_id: true }).meta({ id: 'ApiKey' });
export type KeyItem = z.infer<typeof keyItem>;

/** The one answer that shows the raw key. */
export const createdKey = keyItem
  .omit({ created_at: true })
  .extend({ raw_key: z.string().describe('Shown this once; only its hash is kept') })
  .meta({ id: 'CreatedApiKey' });
export type CreatedKey = z.infer<typeof createdKey>;

export const deletedKey = z.object({ id: z.string(), deleted: z.literal(true) });
