// Shape of the record of a grant in KV: permissions that a member has on one resource, until it expires.
import { z } from 'zod';
import { orgKey } from './org.ts';

/** The permissions that can be granted on a resource of each type. */
export const GRANTABLE = {
  trace: ['traces:read', 'traces:export'],
  agent: ['agents:read', 'agents:write'],
  judge: ['judges:read', 'judges:run', 'judges:write'],
  dataset: ['datasets:read', 'datasets:write', 'judges:run'],
} as const;

export const grantedResource = z.object({
  type: z.enum(['trace', 'agent', 'judge', 'dataset']),
  id: z.string().min(1).max(128),
});
export const grantPermission = z.enum(Object.values(GRANTABLE).flat());

export const grantRecord = z.object({
  grant_id: z.string(),
  org_id: z.string(),
  user_id: z.string(),
  /** joined_at of the member for whom the grant was made: a member who leaves and joins again does not get it back. */
  member_since: z.string(),
  resource: grantedResource,
  permissions: z.array(grantPermission),
  expires_at: z.iso.datetime(),
  created_at: z.iso.datetime(),
});
export type GrantRecord = z.infer<typeof grantRecord>;

/** Key of a grant in its bucket. */
export const grantKey = ({ org_id, grant_id }: Pick<GrantRecord, 'org_id' | 'grant_id'>): string =>
  `${orgKey(org_id)}.${grant_id}`;
