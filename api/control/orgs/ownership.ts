// Rules of an ownership transfer, as functions from the org before to the org after: asked for by an owner, accepted by the
// new one within a day, and then both roles change at once.
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

/** @throws ApiError invalid_request, member_not_found; conflict while another one waits */
export function requestTransfer(org: OrgRecord, request: TransferRequest): TransferChange {
  const { now, ...fields } = request;
  if (fields.new_owner_user_id === fields.from_user_id)
    throw new ApiError('invalid_request', 'new_owner_user_id: is the caller');
  if (activeIn(org, fields.new_owner_user_id) === undefined)
    throw new ApiError('member_not_found', 'new_owner_user_id: is no active member of this org');
  if (org.transfer !== null && transferStatus(org.transfer, now) === 'pending')
    throw new ApiError(
      'conflict',
      `A transfer waits for its acceptance until ${org.transfer.expires_at}; withdraw it first.`,
    );
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
 * Makes the new owner the (first) owner, and the one who asked an admin.
 * @throws ApiError forbidden for anyone but the new owner, invalid_request for a token of no waiting transfer, expired
 */
export function acceptTransfer(
  org: OrgRecord,
  { token_hash, user_id, now }: { token_hash: string; user_id: string; now: number },
): TransferChange {
  const owner = activeIn(org, user_id);
  if (owner === undefined) throw notMember();
  const { transfer } = org;
  if (transfer?.status !== 'pending' || transfer.token_hash !== token_hash)
    throw new ApiError('invalid_request', 'token: is that of no transfer that waits for its acceptance');
  if (transfer.new_owner_user_id !== user_id) throw new ApiError('forbidden', 'The transfer is to another member.');
  const status = transferStatus(transfer, now);
  if (status === 'expired') throw new ApiError('expired', 'The transfer has expired; ask for a new one.');
  const effective: TransferRecord = { ...transfer, status: 'effective', ended_at: iso(now) };
  const others = org.members
    .filter((member) => member !== owner)
    .map((member) => (member.user_id === transfer.from_user_id ? { ...member, role: 'admin' as const } : member));
  return {
    org: { ...org, members: [{ ...owner, role: 'owner' }, ...others], transfer: effective },
    transfer: effective,
  };
}

/** Ends a transfer that waits for its acceptance. @throws ApiError conflict when none waits */
export function withdrawTransfer(org: OrgRecord, now: number): TransferChange {
  if (org.transfer === null || transferStatus(org.transfer, now) !== 'pending')
    throw new ApiError('conflict', 'No transfer waits for its acceptance.');
  const transfer: TransferRecord = { ...org.transfer, status: 'cancelled', ended_at: iso(now) };
  return { org: { ...org, transfer }, transfer };
}

/** What a transfer is by now: a waiting one whose time is over is expired. */
export function transferStatus(
  { status, expires_at }: TransferRecord,
  now: number,
): TransferRecord['status'] | 'expired' {
  return status === 'pending' && Date.parse(expires_at) <= now ? 'expired' : status;
}

/** Said to whoever is no member, and of orgs that are not there. */
export function notMember(): ApiError {
  return new ApiError('forbidden', 'The caller is no member of this org.');
}

function activeIn(org: OrgRecord, user_id: string) {
  return org.members.find((member) => member.status === 'active' && member.user_id === user_id);
}

const iso = (ms: number): string => new Date(ms).toISOString();
