// Record of an organization in KV: it holds the organization, its members, their invites and its
// transfer of ownership, so that every rule over them (at least one owner, a transfer that changes
// two members) is one CAS write. A parsed record has at least one active owner; in a record from
// before members existed, the owner is the only one.
import { z } from 'zod';

/**
 * Maximum number of members of an organization, invited ones included; it keeps the record well
 * below the largest message.
 */
export const MEMBERS_MAX = 2000;
/** Time within which an invite or a transfer can be accepted. */
export const ACCEPT_MS_MAX = 24 * 3_600_000;

/** Owner of the organization that the first start creates; login links of a local service log in as this user. */
export const LOCAL_USER_ID = 'user_local';

export const memberRole = z.enum(['viewer', 'member', 'admin', 'owner']);
export type MemberRole = z.infer<typeof memberRole>;

export const memberRecord = z.object({
  /** The token's sub; for an invited member, a generated usr_… until the invite is accepted. */
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
   * The member who invited, or the member behind the key that did: an open invite ends when that
   * member may no longer invite to its role. Absent when no member's leaving ends the invite, and
   * for members who were never invited.
   */
  invited_by: z.object({ user_id: z.string(), member_since: z.string() }).optional(),
});
export type MemberRecord = z.infer<typeof memberRecord>;

export const transferRecord = z.object({
  transfer_id: z.string(),
  /**
   * `expired` is not stored: a pending transfer whose time is over is expired. cancelled: one of
   * the two can no longer take part.
   */
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
  .describe('Limits of an enterprise organization; null: unlimited');

export const overageBudget = z
  .number()
  .min(0)
  .max(1_000_000_000)
  .describe('Cost that use beyond a hard limit may reach before ingest answers 402; null: ingest answers 429 at once');

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
  /** The transfer that was requested last. */
  transfer: transferRecord.nullable(),
});
export type OrgRecord = z.infer<typeof stored>;

/** Records from before members existed: the owner is a field. */
const withOwnerField = stored
  .omit({ members: true, transfer: true })
  .extend({ owner: z.object({ user_id: z.string(), email: z.string() }) })
  .transform(({ owner, ...rest }): OrgRecord => ({
    ...rest,
    members: [activeMember(owner, 'owner', rest.created_at)],
    transfer: null,
  }));

const either = z.union([stored, withOwnerField]);

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseOrg(text: string): OrgRecord {
  return either.parse(JSON.parse(text));
}

/**
 * Returns a member who belongs to the organization without an invite.
 * @param at ISO 8601
 */
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

/**
 * Returns the start of a membership, which distinguishes it from a later one of the same person.
 */
export function memberSince({ joined_at, invited_at }: MemberRecord): string {
  return joined_at ?? invited_at;
}

export function isActiveOwner({ role, status }: MemberRecord): boolean {
  return role === 'owner' && status === 'active';
}

/** Returns the organization's owner; the first when it has several. */
export function ownerOf(org: Pick<OrgRecord, 'org_id' | 'members'>): MemberRecord {
  const owner = org.members.find(isActiveOwner);
  if (owner === undefined) throw new Error(`the org ${org.org_id} has no owner`);
  return owner;
}

/**
 * Returns the key of an organization in a bucket. Keys allow no dot at the ends or twice in a row,
 * while organization ids do; no organization id contains `=`.
 */
export const orgKey = (org_id: string): string => org_id.replaceAll('.', '=2E');
/** Returns the organization of such a key. */
export const orgOfKey = (key: string): string => key.replaceAll('=2E', '.');
