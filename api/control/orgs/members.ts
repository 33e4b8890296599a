// Changes the members and the ownership of an organization: applies a rule in one compare-and-swap
// write, then queues the mail about it. The mail is queued after the write, so that no mail has an
// invalid token; a crash between the two loses only the mail, and repeating the request sends a new
// one.
import { randomBytes, randomUUID } from 'node:crypto';
import type { Mail } from '../../../schemas/codec.ts';
import type { MemberRecord, OrgRecord, TransferRecord } from '../../../schemas/records/org.ts';
import { hashKey } from '../../http/auth.ts';
import type { OrgCredential, PersonCredential } from '../../http/credential.ts';
import { ApiError } from '../../http/errors.ts';
import type { Role } from '../../http/permissions.ts';
import type {
  InviteBody,
  InvitedMember,
  MemberItem,
  MembersQuery,
  RequestedTransfer,
  TransferItem,
} from './member_schema.ts';
import { acceptInvite, changeRole, invite, removeMember } from './membership.ts';
import { inviteMail, transferMail } from './mails.ts';
import { effectsOn, forgetKeys, type KeyEffect, keysOf } from './member_keys.ts';
import { changeRecord, getOrg, type OrgsDeps } from './orgs.ts';
import { acceptTransfer, notMember, requestTransfer, transferStatus, withdrawTransfer } from './ownership.ts';

const TOKEN_BYTES = 32;

export interface MembersDeps extends OrgsDeps {
  /** Queues a mail durably. */
  queueMail: (mail: Mail) => Promise<void>;
  /** True if responses include the tokens of mails: in development, where mail may not be sent. */
  showTokens: boolean;
  /** Origin of the portal, for links in mails; null where the settings name none. */
  portal: string | null;
}

/**
 * Returns the members and open invites of an organization in the order of their addition, the first
 * owner first.
 */
export function listMembers(
  deps: MembersDeps,
  org_id: string,
  { role, status }: Pick<MembersQuery, 'role' | 'status'>,
): MemberItem[] {
  return getOrg(deps, org_id)
    .members.filter(
      (member) => (role === undefined || member.role === role) && (status === undefined || member.status === status),
    )
    .map(memberItemOf);
}

/** @throws ApiError conflict, forbidden, upstream_unavailable */
export async function inviteMember(
  deps: MembersDeps,
  by: OrgCredential,
  { email, role }: InviteBody,
): Promise<InvitedMember> {
  const token = newToken();
  const now = deps.now();
  const { org, member } = await changeRecord(deps, by.org_id, (org) =>
    invite(org, {
      email,
      role,
      by,
      user_id: `usr_${randomUUID().replaceAll('-', '')}`,
      token_hash: hashKey(token),
      now,
    }),
  );
  await send(deps, inviteMail(org, member, token, { now, portal: deps.portal }), 'invite again');
  return { ...memberItemOf(member), ...shown(deps, token) };
}

/** @returns the member, and the user_id that the invite had */
export async function acceptMembership(
  deps: MembersDeps,
  org_id: string,
  person: PersonCredential,
  token: string,
): Promise<{ member: MemberItem; invited_id: string }> {
  // The response does not reveal to others whether the organization exists.
  if (deps.orgs.get(org_id) === null)
    throw new ApiError('member_not_found', 'The organization has no open invite with this token.');
  const { member, invited_id } = await changeRecord(deps, org_id, (org) =>
    acceptInvite(org, { token_hash: hashKey(token), person, now: deps.now() }),
  );
  return { member: memberItemOf(member), invited_id };
}

/**
 * @returns the member, the previous role, and the API keys whose permissions changed @throws
 * ApiError member_not_found, conflict
 */
export async function setRole(
  deps: MembersDeps,
  org_id: string,
  user_id: string,
  role: Role,
): Promise<{ member: MemberItem; from: Role; api_keys: KeyEffect[] }> {
  const { member, from } = await changeRecord(deps, org_id, (org) => changeRole(org, user_id, role, deps.now()));
  const api_keys = effectsOn(keysOf(deps, org_id, member), from, member.role);
  return { member: memberItemOf(member), from, api_keys };
}

/**
 * @returns the removed member, and the API keys that were revoked @throws ApiError
 * member_not_found, conflict
 */
export async function endMembership(
  deps: MembersDeps,
  org_id: string,
  user_id: string,
): Promise<{ member: MemberItem; api_keys: KeyEffect[] }> {
  const { member } = await changeRecord(deps, org_id, (org) => removeMember(org, user_id, deps.now()));
  const keys = keysOf(deps, org_id, member);
  // Every process rejects the keys as soon as the membership has ended; deleting their records only
  // saves space.
  await forgetKeys(deps, org_id, keys);
  return { member: memberItemOf(member), api_keys: effectsOn(keys, member.role, null) };
}

/** @throws ApiError invalid_request, member_not_found, conflict, upstream_unavailable */
export async function offerOwnership(
  deps: MembersDeps,
  by: OrgCredential,
  new_owner_user_id: string,
): Promise<RequestedTransfer> {
  if (by.kind !== 'user')
    throw new ApiError('forbidden', 'Only an owner can transfer the ownership of an organization.');
  const token = newToken();
  const now = deps.now();
  const { org, transfer } = await changeRecord(deps, by.org_id, (org) =>
    requestTransfer(org, {
      transfer_id: `tfr_${randomUUID().replaceAll('-', '')}`,
      from_user_id: by.user_id,
      new_owner_user_id,
      token_hash: hashKey(token),
      now,
    }),
  );
  await send(
    deps,
    transferMail(org, transfer, memberOf(org, new_owner_user_id), token, { now, portal: deps.portal }),
    'withdraw the transfer and request it again',
  );
  return { ...transferItemOf(transfer, now), ...shown(deps, token) };
}

/** Returns the latest transfer, or null if there never was one. */
export function getTransfer(deps: MembersDeps, org_id: string): TransferItem | null {
  const { transfer } = getOrg(deps, org_id);
  return transfer === null ? null : transferItemOf(transfer, deps.now());
}

/** @returns the id of the cancelled transfer @throws ApiError conflict */
export async function cancelTransfer(deps: MembersDeps, org_id: string): Promise<string> {
  return (await changeRecord(deps, org_id, (org) => withdrawTransfer(org, deps.now()))).transfer.transfer_id;
}

/** @throws ApiError forbidden, invalid_request, expired */
export async function acceptOwnership(
  deps: MembersDeps,
  org_id: string,
  person: PersonCredential,
  token: string,
): Promise<{ transfer: TransferItem; from_user_id: string }> {
  if (deps.orgs.get(org_id) === null) throw notMember();
  const { transfer } = await changeRecord(deps, org_id, (org) =>
    acceptTransfer(org, { token_hash: hashKey(token), user_id: person.user_id, now: deps.now() }),
  );
  return { transfer: transferItemOf(transfer, deps.now()), from_user_id: transfer.from_user_id };
}

async function send(deps: MembersDeps, mail: Mail, remedy: string): Promise<void> {
  try {
    await deps.queueMail(mail);
  } catch (cause) {
    throw new ApiError('upstream_unavailable', `The mail could not be queued; ${remedy}.`, { cause });
  }
}

function memberItemOf({ user_id, email, role, status, invited_at, joined_at }: MemberRecord): MemberItem {
  return { user_id, email, role, status, invited_at, joined_at };
}

function transferItemOf(transfer: TransferRecord, now: number): TransferItem {
  const { transfer_id, new_owner_user_id, expires_at } = transfer;
  return { transfer_id, status: transferStatus(transfer, now), new_owner_user_id, expires_at };
}

function memberOf(org: OrgRecord, user_id: string): MemberRecord {
  const member = org.members.find((other) => other.user_id === user_id);
  if (member === undefined) throw new Error('the new owner of a transfer is not a member');
  return member;
}

const newToken = (): string => randomBytes(TOKEN_BYTES).toString('base64url');

const shown = ({ showTokens }: MembersDeps, token: string): { token?: string } => (showTokens ? { token } : {});
