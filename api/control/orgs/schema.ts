// Request, response and record shapes of organizations and API keys.
import { z } from 'zod';
import { orgRateLimits, overageBudget, planName } from '../../../schemas/records/org.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';

const USER_ID_CHARS_MAX = 128;
const ORG_ID_PATTERN = /^[A-Za-z0-9_.-]{1,128}$/;
const orgId = z
  .string()
  .regex(ORG_ID_PATTERN, { error: 'must be 1 to 128 of letters, digits, _ . -' })
  .refine(isAddressable, { error: NOT_ADDRESSABLE });
const name = z.string().trim().min(1).max(200);
const userId = z.string().min(1).max(USER_ID_CHARS_MAX).refine(isAddressable, { error: NOT_ADDRESSABLE });
const owner = z.object({ user_id: z.string().min(1).max(128), email: z.email() });
const givenOwner = owner.extend({ user_id: userId });

/** An organization as the operator sees it. */
export const orgItem = z
  .object({
    org_id: z.string(),
    name: z.string(),
    plan_name: planName,
    owner: owner.describe('The owner; the first one if the organization has several'),
    overage_budget_usd: overageBudget.nullable(),
    rate_limits: orgRateLimits.nullable(),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'Org' });
export type OrgItem = z.infer<typeof orgItem>;

/** An organization as its members and keys see it. */
export const orgView = orgItem
  .partial({ plan_name: true, overage_budget_usd: true, rate_limits: true })
  .extend({
    effective_rate_limits: orgRateLimits
      .nullable()
      .optional()
      .describe('Rate limits in force: those of the plan, or rate_limits on the plan enterprise; null: unlimited'),
  })
  .describe(
    'plan_name, overage_budget_usd, rate_limits and effective_rate_limits are included only for callers with the permission billing:view',
  )
  .meta({ id: 'OrgView' });
export type OrgView = z.infer<typeof orgView>;

export const createOrgBody = z.object({
  org_id: orgId.optional(),
  name,
  plan_name: planName,
  owner: givenOwner,
  overage_budget_usd: overageBudget.nullish(),
  rate_limits: orgRateLimits.nullish(),
});
export type CreateOrgBody = z.infer<typeof createOrgBody>;

export const patchOrgBody = createOrgBody.omit({ org_id: true }).partial();
export type PatchOrgBody = z.infer<typeof patchOrgBody>;

/** Response to the operator's changes: the record, and the same record again in the field org. */
export const orgAnswer = orgItem.extend({ org: orgItem }).meta({ id: 'OrgAnswer' });
