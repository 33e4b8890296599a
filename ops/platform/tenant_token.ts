// Names tenants in the idempotency buckets by a digest, so that a key does not reveal its tenant.
import { hash } from 'node:crypto';

/**
 * Returns a digest of 128 bits. That suffices for names: a collision would have to be found among
 * one tenant's own keys.
 */
export const nameDigest = (text: string): string => hash('sha256', text, 'base64url').slice(0, 22);

/** Returns the first token of an organization's keys. */
export const orgTenantToken = (org_id: string): string => nameDigest(tenantOfOrg(org_id));

/** Returns the name of an organization as a tenant of idempotency keys. */
export const tenantOfOrg = (org_id: string): string => `org:${org_id}`;
