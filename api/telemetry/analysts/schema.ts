// Request and response shapes of the analysts of an organization.
import { z } from 'zod';

/**
 * Maximum analysts of one organization. Each may have a few running queries, which are bounded for
 * the organization as a whole.
 */
export const ANALYSTS_MAX = 20;

export const analystParams = z.object({ org_id: z.string(), user: z.string() });

export const createAnalystBody = z.strictObject({
  name: z.string().trim().min(1).max(100).describe('Display name, unique in the organization'),
});
export type CreateAnalystBody = z.infer<typeof createAnalystBody>;

export const analystItem = z
  .object({ user: z.string().describe('User name to log in with'), name: z.string(), created_at: z.iso.datetime() })
  .meta({ id: 'Analyst' });
export type AnalystItem = z.infer<typeof analystItem>;

export const createdAnalyst = z
  .object({
    user: z.string().describe('User name to log in with'),
    password: z.string().describe('Shown in this response only'),
    url: z.string().describe('Address of the ClickHouse HTTP protocol, which is the address of this API'),
  })
  .meta({ id: 'CreatedAnalyst' });
export type CreatedAnalyst = z.infer<typeof createdAnalyst>;

export const deletedAnalyst = z.object({ user: z.string(), deleted: z.literal(true) });
