// Rules of an ownership transfer, as pure functions from the organization before to the
// organization after. An owner offers the ownership, the new owner accepts it within 24 hours, and
// both roles change in one write.
import { ACCEPT_MS_MAX, type OrgRecord, type TransferRecord } from '../../../schemas/records/org.ts';
import { ApiError } from '../../http/errors.ts';

export interface TransferRequest {
  transfer_id: string;
  from_user_id: string;
  new_owner_user_id: string;
  token_hash: string;
  /** Milliseconds since the epoch. */
  now: number;
}

export interface TransferChange {
  org: OrgRecord;
  transfer: TransferRecord;
}

/**
 * @throws ApiError invalid_request, member_not_found; conflict while another transfer is pending
 */
export function requestTransfer(org: OrgRecord, request: TransferRequest): TransferChange {
  const { now, ...fields } = request;
  if (fields.new_owner_user_id === fields.from_user_id)
    throw new ApiError('invalid_request', 'new_owner_user_id: must not be the caller');
  if (activeIn(org, fields.new_owner_user_id) === undefined)
    throw new ApiError('member_not_found', 'new_owner_user_id: is not an active member of this organization');
  if (org.transfer !== null && transferStatus(org.transfer, now) === 'pending')
    throw new ApiError('conflict', `A transfer is pending until ${org.transfer.expires_at}. Withdraw it first.`);
  const transfer: TransferRecord = {
    ...fields,
    status: 'pending',
    requested_at: iso(now),
    expires_at: iso(now + ACCEPT_MS_MAX),
    ended_at: null,
  };
  return { org: { ...org, transfer }, transfer };
}

/**
 * Makes the new owner the first owner, and the previous owner an admin.
 *
 * @throws ApiError forbidden for anyone but the new owner, invalid_request for a token of no
 * pending transfer, expired
 */
export function acceptTransfer(
  org: OrgRecord,
  { token_hash, user_id, now }: { token_hash: string; user_id: string; now: number },
): TransferChange {
  const owner = activeIn(org, user_id);
  if (owner === undefined) throw notMember();
  const { transfer } = org;
  if (transfer?.status !== 'pending' || transfer.token_hash !== token_hash)
    throw new ApiError('invalid_request', 'token: is not the token of a pending transfer');
  if (transfer.new_owner_user_id !== user_id)
    throw new ApiError('forbidden', 'The transfer is offered to another member.');
  const status = transferStatus(transfer, now);
  if (status === 'expired') throw new ApiError('expired', 'The transfer has expired. Ask for a new one.');
  const effective: TransferRecord = { ...transfer, status: 'effective', ended_at: iso(now) };
  const others = org.members
    .filter((member) => member !== owner)
    .map((member) => (member.user_id === transfer.from_user_id ? { ...member, role: 'admin' as const } : member));
  return {
    org: { ...org, members: [{ ...owner, role: 'owner' }, ...others], transfer: effective },
    transfer: effective,
  };
}

/** Cancels the pending transfer. @throws ApiError conflict when none is pending */
export function withdrawTransfer(org: OrgRecord, now: number): TransferChange {
  if (org.transfer === null || transferStatus(org.transfer, now) !== 'pending')
    throw new ApiError('conflict', 'No transfer is pending.');
  const transfer: TransferRecord = { ...org.transfer, status: 'cancelled', ended_at: iso(now) };
  return { org: { ...org, transfer }, transfer };
}

/** Returns the status of a transfer: a pending one past its time is expired. */
export function transferStatus(
  { status, expires_at }: TransferRecord,
  now: number,
): TransferRecord['status'] | 'expired' {
  return status === 'pending' && Date.parse(expires_at) <= now ? 'expired' : status;
}

/**
 * Returns the error for a caller who is not a member, also of an organization that does not exist.
 */
export function notMember(): ApiError {
  return new ApiError('forbidden', 'The caller is not a member of this organization.');
}

function activeIn(org: OrgRecord, user_id: string) {
  return org.members.find((member) => member.status === 'active' && member.user_id === user_id);
}

const iso = (ms: number): string => new Date(ms).toISOString();
