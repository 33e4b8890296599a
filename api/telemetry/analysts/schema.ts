// Shapes of the routes of analysts of orgs.
import { z } from 'zod';

/** Of one org; each may have a few queries running, which are bounded for the org as a whole. */
export const ANALYSTS_MAX = 20;

export const analystParams = z.object({ org_id: z.string(), user: z.string() });

export const createAnalystBody = z.strictObject({
  name: z.string().trim().min(1).max(100).describe('What people call it; unique in the org'),
});
export type CreateAnalystBody = z.infer<typeof createAnalystBody>;

export const analystItem = z
  .object({ user: z.string().describe('Name to log in with'), name: z.string(), created_at: z.iso.datetime() })
  .meta({ id: 'Analyst' });
export type AnalystItem = z.infer<typeof analystItem>;

export const createdAnalyst = z
  .object({
    user: z.string().describe('Name to log in with'),
    password: z.string().describe('Shown in this answer and never again'),
    url: z.string().describe("Where ClickHouse's HTTP protocol is spoken: the address of this very API"),
  })
  .meta({ id: 'CreatedAnalyst' });
export type CreatedAnalyst = z.infer<typeof createdAnalyst>;

export const deletedAnalyst = z.object({ user: z.string(), deleted: z.literal(true) });
