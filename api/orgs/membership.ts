// Rules over the members of an org, as functions from the record before to the record after. No clock, no I/O: what they
// decide on is what the store then replaces, so that a rule holds whoever else writes.
// Guarantees: an org keeps an active owner; a token opens its invite once; nobody makes a member above themselves.
import {
  ACCEPT_MS_MAX,
  activeMember,
  isActiveOwner,
  type MemberRecord,
  MEMBERS_MAX,
  type OrgRecord,
  ownerOf,
} from '../../schemas/records/org.ts';
import { ApiError } from '../http/errors.ts';
import { type Role, ROLES } from '../http/permissions.ts';

/** An org after a change, with the member that it was about. */
export interface MemberChange {
  org: OrgRecord;
  member: MemberRecord;
}

export interface Invitation {
  email: string;
  role: Role;
  /** Of the person or key that invites; a key counts as an admin. */
  by: Role;
  /** For a new one; an invited member keeps theirs. */
  user_id: string;
  token_hash: string;
  /** Milliseconds since the epoch. */
  now: number;
}

/** Invites an address, or an invited one again: then the old token is void. @throws ApiError conflict, forbidden */
export function invite(org: OrgRecord, { email, role, by, user_id, token_hash, now }: Invitation): MemberChange {
  const known = org.members.find((member) => sameEmail(member.email, email));
  if (known?.status === 'active') throw new ApiError('conflict', 'email: is a member of this org');
  if (isAbove(role, by) || (known !== undefined && isAbove(known.role, by)))
    throw new ApiError('forbidden', `The role ${by} invites up to ${by}; only an owner makes an owner.`);
  if (known === undefined && org.members.length >= MEMBERS_MAX)
    throw new ApiError('conflict', `The org has ${String(MEMBERS_MAX)} members and invites, the most that it can have.`);
  const member: MemberRecord = {
    user_id: known?.user_id ?? user_id,
    email,
    role,
    status: 'invited',
    invited_at: iso(now),
    joined_at: null,
    invite_token_hash: token_hash,
    invite_expires_at: iso(now + ACCEPT_MS_MAX),
  };
  return { org: known === undefined ? { ...org, members: [...org.members, member] } : replaced(org, known, member), member };
}

export interface Acceptance {
  token_hash: string;
  person: { user_id: string; email: string | null };
  now: number;
}

/**
 * Makes the invited person a member under their own id.
 * @throws ApiError member_not_found for a token that is unknown, used or void; forbidden for another address; expired; conflict
 */
export function acceptInvite(org: OrgRecord, { token_hash, person, now }: Acceptance): MemberChange & { invited_id: string } {
  const known = org.members.find((member) => member.status === 'invited' && member.invite_token_hash === token_hash);
  if (known === undefined) throw new ApiError('member_not_found', 'No open invite of this org has this token.');
  if (person.email === null || !sameEmail(known.email, person.email))
    throw new ApiError('forbidden', 'The invite is for another email address than that of the token.');
  if (Date.parse(known.invite_expires_at ?? known.invited_at) <= now)
    throw new ApiError('expired', 'The invite has expired; ask for a new one.');
  if (org.members.some(({ status, user_id }) => status === 'active' && user_id === person.user_id))
    throw new ApiError('conflict', 'The caller is a member of this org already.');
  const member: MemberRecord = {
    ...known,
    user_id: person.user_id,
    status: 'active',
    joined_at: iso(now),
    invite_token_hash: null,
    invite_expires_at: null,
  };
  return { org: replaced(org, known, member), member, invited_id: known.user_id };
}

/** Gives a member, invited or active, another role. @throws ApiError member_not_found; conflict for the last owner */
export function changeRole(org: OrgRecord, user_id: string, role: Role, now: number): MemberChange & { from: Role } {
  const known = memberIn(org, user_id);
  if (known.role === role) return { org, member: known, from: known.role };
  checkNotLastOwner(org, known);
  const member = { ...known, role };
  const changed = replaced(org, known, member);
  return { org: isActiveOwner(known) ? withoutTransferOf(changed, user_id, 'from', now) : changed, member, from: known.role };
}

/** Takes a member or an invite away. @throws ApiError member_not_found; conflict for the last owner */
export function removeMember(org: OrgRecord, user_id: string, now: number): MemberChange {
  const member = memberIn(org, user_id);
  checkNotLastOwner(org, member);
  const without = { ...org, members: org.members.filter((other) => other !== member) };
  return { org: withoutTransferOf(without, user_id, 'either', now), member };
}

/**
 * Puts somebody in the place of the org's (first) owner, who becomes an admin. Whoever has an open invite by this address has
 * it no more: they are in.
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
    throw new ApiError('conflict', `The org has ${String(MEMBERS_MAX)} members and invites, the most that it can have.`);
  const changed = { ...org, members: [owner, ...others] };
  return former.user_id === who.user_id ? changed : withoutTransferOf(changed, former.user_id, 'from', now);
}

/** A transfer that waits for its acceptance ends when one of the two can no longer take part in it. */
function withoutTransferOf(org: OrgRecord, user_id: string, as: 'from' | 'either', now: number): OrgRecord {
  const { transfer } = org;
  if (transfer?.status !== 'pending') return org;
  const concerns = transfer.from_user_id === user_id || (as === 'either' && transfer.new_owner_user_id === user_id);
  return concerns ? { ...org, transfer: { ...transfer, status: 'cancelled', ended_at: iso(now) } } : org;
}

function memberIn(org: OrgRecord, user_id: string): MemberRecord {
  const member = org.members.find((other) => other.user_id === user_id);
  if (member === undefined) throw new ApiError('member_not_found', 'The org has no member of this user_id.');
  return member;
}

function checkNotLastOwner(org: OrgRecord, member: MemberRecord): void {
  if (isActiveOwner(member) && org.members.filter(isActiveOwner).length === 1)
    throw new ApiError('conflict', 'The last owner of an org can be neither removed nor demoted; transfer the ownership instead.');
}

function replaced(org: OrgRecord, before: MemberRecord, after: MemberRecord): OrgRecord {
  return { ...org, members: org.members.map((member) => (member === before ? after : member)) };
}

const isAbove = (role: Role, other: Role): boolean => ROLES.indexOf(role) > ROLES.indexOf(other);

/** Addresses are compared without their case, as mail servers do in practice. */
const sameEmail = (a: string, b: string): boolean => a.toLowerCase() === b.toLowerCase();

const iso = (ms: number): string => new Date(ms).toISOString();
