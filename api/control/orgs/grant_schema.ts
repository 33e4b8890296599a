// Request and response shapes of grants.
import { z } from 'zod';
import { isoMillis } from '../../../schemas/formats/times.ts';
import { grantedResource, grantPermission, grantRecord } from '../../../schemas/records/grant.ts';

/** The last time that has a four-digit year; records and answers take no other. */
const EXPIRES_MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** A grant as answers show it. */
export const grantItem = grantRecord.omit({ org_id: true, member_since: true }).meta({ id: 'Grant' });
export type GrantItem = z.infer<typeof grantItem>;

export const createGrantBody = z.strictObject({
  user_id: z.string().min(1).max(128),
  resource: grantedResource,
  permissions: z.array(grantPermission).min(1).max(grantPermission.options.length),
  expires_at: z
    .string()
    .max(64)
    .refine((text) => isoMillis(text) <= EXPIRES_MS_MAX, { error: 'must be an ISO 8601 time, up to the year 9999' })
    .meta({ format: 'date-time', description: 'When the grant ends; must be in the future' }),
});
export type CreateGrantBody = z.infer<typeof createGrantBody>;

export const grantParams = z.object({ org_id: z.string(), grant_id: z.string() });
export const deletedGrant = z.object({ grant_id: z.string(), deleted: z.literal(true) });
