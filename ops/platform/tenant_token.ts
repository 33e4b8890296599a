// The name of a tenant in the buckets of idempotency: a digest, so that no tenant can be read from a key.
import { hash } from 'node:crypto';

/** 128 bits: enough for names, where a collision would have to be found among one tenant's own keys. */
export const nameDigest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);

/** First token of the keys of an org. */
export const orgTenantToken = (org_id: string): string => nameDigest(tenantOfOrg(org_id));

/** An org as a tenant of idempotency keys. */
export const tenantOfOrg = (org_id: string): string => `org:${org_id}`;
