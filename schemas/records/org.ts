// An org as it is stored in KV: one record holds the org, its members, their invites and its transfer of ownership, so that
// every rule over them (one owner at least, a transfer that changes two members) is one CAS write.
// In: the text of a value. Out: the record, with at least one active owner; what was written before there were members has
// its owner as the only one.
import { z } from 'zod';

/** Members an org can have, invited ones too; keeps the record well below the largest message. */
export const MEMBERS_MAX = 2000;
/** How long an invite or a transfer can be accepted. */
export const ACCEPT_MS_MAX = 24 * 3_600_000;

export const memberRole = z.enum(['viewer', 'member', 'admin', 'owner']);
export type MemberRole = z.infer<typeof memberRole>;

export const memberRecord = z.object({
  /** The token's sub; of an invited member a made-up usr_… until the invite is accepted. */
  user_id: z.string(),
  email: z.string(),
  role: memberRole,
  status: z.enum(['invited', 'active']),
  invited_at: z.iso.datetime(),
  joined_at: z.iso.datetime().nullable(),
  /** SHA-256 of the token in the mail, lower-case hex; null once it was used. */
  invite_token_hash: z.string().nullable(),
  invite_expires_at: z.iso.datetime().nullable(),
  /**
   * The member who invited, or the member behind the key that did: an open invite ends when they may no longer invite to its role.
   * Left out where nobody's leaving ends the invite, and of members who were never invited.
   */
  invited_by: z.object({ user_id: z.string(), member_since: z.string() }).optional(),
});
export type MemberRecord = z.infer<typeof memberRecord>;

export const transferRecord = z.object({
  transfer_id: z.string(),
  /** expired is not stored: a pending one whose time is over is expired. cancelled: one of the two can no longer take part. */
  status: z.enum(['pending', 'effective', 'cancelled']),
  from_user_id: z.string(),
  new_owner_user_id: z.string(),
  /** SHA-256 of the token in the mail, lower-case hex. */
  token_hash: z.string(),
  requested_at: z.iso.datetime(),
  expires_at: z.iso.datetime(),
  ended_at: z.iso.datetime().nullable(),
});
export type TransferRecord = z.infer<typeof transferRecord>;

export const planName = z.enum(['free', 'starter', 'pro', 'enterprise']);

const perMinute = z.int().min(1).max(100_000_000);
export const orgRateLimits = z
  .object({ ingest_per_minute: perMinute, api_per_minute: perMinute, burst: perMinute })
  .describe('Limits of an enterprise org; null: unlimited');

export const overageBudget = z
  .number()
  .min(0)
  .max(1_000_000_000)
  .describe('What use past a hard limit may cost before ingest answers 402; null: it answers 429 at once');

const stored = z.object({
  org_id: z.string(),
  name: z.string(),
  plan_name: planName,
  overage_budget_usd: overageBudget.nullable(),
  rate_limits: orgRateLimits.nullable(),
  created_at: z.iso.datetime(),
  updated_at: z.iso.datetime(),
  members: z
    .array(memberRecord)
    .max(MEMBERS_MAX)
    .refine((members) => members.some(isActiveOwner), { error: 'an org has an owner' }),
  /** The last one that was asked for. */
  transfer: transferRecord.nullable(),
});
export type OrgRecord = z.infer<typeof stored>;

/** Records of the time before members: the owner is a field. */
const withOwnerField = stored
  .omit({ members: true, transfer: true })
  .extend({ owner: z.object({ user_id: z.string(), email: z.string() }) })
  .transform(({ owner, ...rest }): OrgRecord => ({
    ...rest,
    members: [activeMember(owner, 'owner', rest.created_at)],
    transfer: null,
  }));

const either = z.union([stored, withOwnerField]);

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseOrg(text: string): OrgRecord {
  return either.parse(JSON.parse(text));
}

/** Someone who belongs to the org without having been invited. `at`: ISO 8601. */
export function activeMember(who: { user_id: string; email: string }, role: MemberRole, at: string): MemberRecord {
  const { user_id, email } = who;
  return {
    user_id,
    email,
    role,
    status: 'active',
    invited_at: at,
    joined_at: at,
    invite_token_hash: null,
    invite_expires_at: null,
  };
}

/** Returns what tells one membership of a person from a later one: the time at which it began. */
export function memberSince({ joined_at, invited_at }: MemberRecord): string {
  return joined_at ?? invited_at;
}

export function isActiveOwner({ role, status }: MemberRecord): boolean {
  return role === 'owner' && status === 'active';
}

/** The org's owner; the first where it has several. */
export function ownerOf(org: Pick<OrgRecord, 'org_id' | 'members'>): MemberRecord {
  const owner = org.members.find(isActiveOwner);
  if (owner === undefined) throw new Error(`the org ${org.org_id} has no owner`);
  return owner;
}

/** Key of what a bucket holds by org. Keys take no dot at the ends or twice in a row; org ids may. `=` is in no org id. */
export const orgKey = (org_id: string): string => org_id.replaceAll('.', '=2E');
/** The org of such a key. */
export const orgOfKey = (key: string): string => key.replaceAll('=2E', '.');
