// Shape of the record of an API key in KV, and the scopes that a key can have.
import { z } from 'zod';

/** Every scope that an API key can have; `*` means all of them. */
export const SCOPES = [
  '*',
  'ingest:write',
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
});
export type KeyRecord = z.infer<typeof keyRecord>;
