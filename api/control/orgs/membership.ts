// Rules over the members of an organization, as pure functions from the record before to the record
// after. The store replaces exactly the record that a rule decided on, so a rule holds against
// concurrent writes. An organization always has an active owner; a token accepts its invite once; a
// caller invites only to roles whose permissions it holds.
import {
  ACCEPT_MS_MAX,
  activeMember,
  isActiveOwner,
  type MemberRecord,
  MEMBERS_MAX,
  memberSince,
  type OrgRecord,
  ownerOf,
} from '../../../schemas/records/org.ts';
import { isAddressable, NOT_ADDRESSABLE } from '../../../schemas/path_names.ts';
import { may, type OrgCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import { permissionsMissing, type Role, roleMay } from '../../http/permissions.ts';

/** Maximum permissions that an error names. */
const SHOWN_MAX = 5;

/** An organization after a change, and the member that changed. */
export interface MemberChange {
  org: OrgRecord;
  member: MemberRecord;
}

export interface Invitation {
  email: string;
  role: Role;
  /**
   * The person or key that invites. Checked against the record that receives the invite, so that a
   * concurrent demotion takes effect.
   */
  by: OrgCredential;
  /** Id of a new invite. An invite that is renewed keeps its id. */
  user_id: string;
  token_hash: string;
  /** Milliseconds since the epoch. */
  now: number;
}

/**
 * Invites an address. Inviting it again voids the previous token. @throws ApiError conflict,
 * forbidden
 */
export function invite(org: OrgRecord, { email, role, by, user_id, token_hash, now }: Invitation): MemberChange {
  const known = org.members.find((member) => sameEmail(member.email, email));
  if (known?.status === 'active') throw new ApiError('conflict', 'email: is already a member of this organization');
  for (const asked of new Set([role, known?.role ?? role])) checkHolds(org, by, asked);
  if (known === undefined && org.members.length >= MEMBERS_MAX)
    throw new ApiError(
      'conflict',
      `The organization has ${MEMBERS_MAX} members and invites, the most that it can have.`,
    );
  const member: MemberRecord = {
    user_id: known?.user_id ?? user_id,
    email,
    role,
    status: 'invited',
    invited_at: iso(now),
    joined_at: null,
    invite_token_hash: token_hash,
    invite_expires_at: iso(now + ACCEPT_MS_MAX),
    ...inviterOf(org, by),
  };
  return {
    org: known === undefined ? { ...org, members: [...org.members, member] } : replaced(org, known, member),
    member,
  };
}

export interface Acceptance {
  token_hash: string;
  person: { user_id: string; email: string | null };
  now: number;
}

/**
 * Makes the invited person a member under their own id.
 *
 * @throws ApiError member_not_found for a token that is unknown, used or void; forbidden for
 * another address; expired, also when the inviting member may no longer invite to the role;
 * conflict; invalid_request for a user_id that cannot be used in a path
 */
export function acceptInvite(
  org: OrgRecord,
  { token_hash, person, now }: Acceptance,
): MemberChange & { invited_id: string } {
  const known = org.members.find((member) => member.status === 'invited' && member.invite_token_hash === token_hash);
  if (known === undefined)
    throw new ApiError('member_not_found', 'The organization has no open invite with this token.');
  if (person.email === null || !sameEmail(known.email, person.email))
    throw new ApiError('forbidden', 'The invite is for another email address than that of the token.');
  if (Date.parse(known.invite_expires_at ?? known.invited_at) <= now)
    throw new ApiError('expired', 'The invite has expired. Ask for a new one.');
  if (!isVouchedFor(org, known))
    throw new ApiError(
      'expired',
      `The inviting member may no longer invite to the role ${known.role}. Ask for a new invite.`,
    );
  if (activeIn(org, person.user_id) !== undefined)
    throw new ApiError('conflict', 'The caller is already a member of this organization.');
  if (!isAddressable(person.user_id)) throw new ApiError('invalid_request', `sub of the token: ${NOT_ADDRESSABLE}`);
  const member: MemberRecord = {
    ...known,
    user_id: person.user_id,
    status: 'active',
    joined_at: iso(now),
    invite_token_hash: null,
    invite_expires_at: null,
    invited_by: undefined,
  };
  return { org: replaced(org, known, member), member, invited_id: known.user_id };
}

/**
 * Changes the role of a member or of an invite. @throws ApiError member_not_found; conflict for the
 * last owner
 */
export function changeRole(org: OrgRecord, user_id: string, role: Role, now: number): MemberChange & { from: Role } {
  const known = memberIn(org, user_id);
  if (known.role === role) return { org, member: known, from: known.role };
  checkNotLastOwner(org, known);
  // The owner who changes the role of an invite replaces the inviting member as the one whose
  // permissions the invite rests on.
  const member: MemberRecord = { ...known, role, invited_by: undefined };
  const changed = replaced(org, known, member);
  return {
    org: isActiveOwner(known) ? withoutTransferOf(changed, user_id, 'from', now) : changed,
    member,
    from: known.role,
  };
}

/**
 * Removes a member or withdraws an invite. @throws ApiError member_not_found; conflict for the last
 * owner
 */
export function removeMember(org: OrgRecord, user_id: string, now: number): MemberChange {
  const member = memberIn(org, user_id);
  checkNotLastOwner(org, member);
  const without = { ...org, members: org.members.filter((other) => other !== member) };
  return { org: withoutTransferOf(without, user_id, 'either', now), member };
}

/**
 * Replaces the first owner of the organization, who becomes an admin. An open invite for the
 * address of the new owner is removed.
 */
export function replaceOwner(org: OrgRecord, who: { user_id: string; email: string }, now: number): OrgRecord {
  const former = ownerOf(org);
  const known = org.members.find(({ user_id }) => user_id === who.user_id);
  const owner: MemberRecord =
    known?.status === 'active' ? { ...known, email: who.email, role: 'owner' } : activeMember(who, 'owner', iso(now));
  const others = org.members
    .filter((member) => member !== known && !(member.status === 'invited' && sameEmail(member.email, who.email)))
    .map((member) => (member === former ? { ...member, role: 'admin' as const } : member));
  if (others.length >= MEMBERS_MAX)
    throw new ApiError(
      'conflict',
      `The organization has ${MEMBERS_MAX} members and invites, the most that it can have.`,
    );
  const changed = { ...org, members: [owner, ...others] };
  return former.user_id === who.user_id ? changed : withoutTransferOf(changed, former.user_id, 'from', now);
}

/** Cancels a pending transfer when one of its two members can no longer take part in it. */
function withoutTransferOf(org: OrgRecord, user_id: string, as: 'from' | 'either', now: number): OrgRecord {
  const { transfer } = org;
  if (transfer?.status !== 'pending') return org;
  const concerns = transfer.from_user_id === user_id || (as === 'either' && transfer.new_owner_user_id === user_id);
  return concerns ? { ...org, transfer: { ...transfer, status: 'cancelled', ended_at: iso(now) } } : org;
}

function activeIn(org: OrgRecord, user_id: string): MemberRecord | undefined {
  return org.members.find((other) => other.status === 'active' && other.user_id === user_id);
}

function memberIn(org: OrgRecord, user_id: string): MemberRecord {
  const member = org.members.find((other) => other.user_id === user_id);
  if (member === undefined) throw new ApiError('member_not_found', 'The organization has no member with this user_id.');
  return member;
}

function checkNotLastOwner(org: OrgRecord, member: MemberRecord): void {
  if (isActiveOwner(member) && org.members.filter(isActiveOwner).length === 1)
    throw new ApiError(
      'conflict',
      'The last owner of an organization can be neither removed nor demoted. Transfer the ownership instead.',
    );
}

/** Rejects a caller who lacks a permission of the role. @throws ApiError forbidden */
function checkHolds(org: OrgRecord, by: OrgCredential, role: Role): void {
  const now = asOf(org, by);
  const missing = permissionsMissing(role, (permission) => now !== null && may(now, permission));
  if (missing.length === 0) return;
  const more = missing.length > SHOWN_MAX ? ` and ${missing.length - SHOWN_MAX} more` : '';
  const detail = `role: a caller can invite only to roles whose permissions it holds; for the role ${role} it lacks`;
  throw new ApiError('forbidden', `${detail} ${missing.slice(0, SHOWN_MAX).join(', ')}${more}.`);
}

/** Returns the member on whose permissions an invite rests, for its record. */
function inviterOf(org: OrgRecord, by: OrgCredential): Pick<MemberRecord, 'invited_by'> {
  if (by.kind === 'api_key')
    return by.maker === undefined
      ? {}
      : { invited_by: { user_id: by.maker.user_id, member_since: by.maker.member_since } };
  const member = activeIn(org, by.user_id);
  return member === undefined ? {} : { invited_by: { user_id: by.user_id, member_since: memberSince(member) } };
}

/**
 * Returns whether the inviting member may still invite, and still holds the permissions of the
 * invite's role.
 */
function isVouchedFor(org: OrgRecord, { role, invited_by }: MemberRecord): boolean {
  if (invited_by === undefined) return true;
  const inviter = activeIn(org, invited_by.user_id);
  if (inviter === undefined || memberSince(inviter) !== invited_by.member_since) return false;
  return (
    roleMay(inviter.role, 'members:invite') &&
    permissionsMissing(role, (permission) => roleMay(inviter.role, permission)).length === 0
  );
}

/**
 * Returns the caller with the role that the member, or the member behind the key, has in this
 * record; null if the membership has ended.
 */
function asOf(org: OrgRecord, by: OrgCredential): OrgCredential | null {
  const user_id = by.kind === 'user' ? by.user_id : by.maker?.user_id;
  if (user_id === undefined) return by;
  const member = activeIn(org, user_id);
  if (member === undefined) return null;
  if (by.kind === 'user') return { ...by, role: member.role };
  return by.maker?.member_since === memberSince(member) ? { ...by, maker: { ...by.maker, role: member.role } } : null;
}

function replaced(org: OrgRecord, before: MemberRecord, after: MemberRecord): OrgRecord {
  return { ...org, members: org.members.map((member) => (member === before ? after : member)) };
}

/** Returns whether two addresses are equal ignoring case, as mail servers do in practice. */
const sameEmail = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

const iso = (ms: number): string => new Date(ms).toISOString();
