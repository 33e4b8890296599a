// Request and response shapes of grants.
import { z } from 'zod';
import { isoMillis } from '../../../schemas/formats/times.ts';
import type { Resource } from '../../http/auth.ts';
import type { Permission } from '../../http/permissions.ts';

/** The last time that has a four-digit year; records and answers take no other. */
const EXPIRES_MS_MAX = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** What can be granted on a thing of each type. */
export const GRANTABLE = {
  trace: ['traces:read', 'traces:export'],
  agent: ['agents:read', 'agents:write'],
  judge: ['judges:read', 'judges:run', 'judges:write'],
  dataset: ['datasets:read', 'datasets:write', 'judges:run'],
} as const satisfies Record<Resource['type'], readonly Permission[]>;

const resource = z.object({ type: z.enum(['trace', 'agent', 'judge', 'dataset']), id: z.string().min(1).max(128) });
const permission = z.enum(Object.values(GRANTABLE).flat());

/** A grant as stored. */
export const grantRecord = z.object({
  grant_id: z.string(),
  org_id: z.string(),
  user_id: z.string(),
  /** joined_at of the member that it was made for: whoever leaves the org and comes back does not get it back. */
  member_since: z.string(),
  resource,
  permissions: z.array(permission),
  expires_at: z.iso.datetime(),
  created_at: z.iso.datetime(),
});
export type GrantRecord = z.infer<typeof grantRecord>;

/** A grant as answers show it. */
export const grantItem = grantRecord.omit({ org_id: true, member_since: true }).meta({ id: 'Grant' });
export type GrantItem = z.infer<typeof grantItem>;

export const createGrantBody = z.strictObject({
  user_id: z.string().min(1).max(128),
  resource,
  permissions: z.array(permission).min(1).max(permission.options.length),
  expires_at: z
    .string()
    .max(64)
    .refine((text) => isoMillis(text) <= EXPIRES_MS_MAX, { error: 'takes an ISO 8601 time, up to the year 9999' })
    .meta({ format: 'date-time', description: 'When the grant ends; must be in the future' }),
});
export type CreateGrantBody = z.infer<typeof createGrantBody>;

export const grantParams = z.object({ org_id: z.string(), grant_id: z.string() });
export const deletedGrant = z.object({ grant_id: z.string(), deleted: z.literal(true) });
