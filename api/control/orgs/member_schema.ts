// Shapes of members and of the transfer of ownership: what requests bring, and what answers show. Nothing here shows a token's hash.
import { z } from 'zod';
import { memberRecord, memberRole } from '../../../schemas/records/org.ts';
import { offsetQuery } from '../../http/pagination.ts';
import { keyEffect } from './member_keys.ts';

const EMAIL_CHARS_MAX = 254;
const TOKEN_CHARS_MAX = 200;
const userId = z.string().min(1).max(128);

/** Query of the list of members. */
export const membersQuery = z.object({
  ...offsetQuery,
  role: memberRole.optional().describe('Members and invites of this role'),
  status: memberRecord.shape.status.optional().describe('invited: open invites; active: members'),
});
export type MembersQuery = z.output<typeof membersQuery>;

export const memberItem = memberRecord
  .pick({ user_id: true, email: true, role: true, status: true, invited_at: true, joined_at: true })
  .extend({ user_id: z.string().describe("The sub of the member's tokens; made up while the invite is open") })
  .meta({ id: 'Member' });
export type MemberItem = z.infer<typeof memberItem>;

const devToken = z
  .string()
  .optional()
  .describe('In development only, as mails may not be sent there: what the mail holds');

export const invitedMember = memberItem.extend({ token: devToken }).meta({ id: 'InvitedMember' });
export type InvitedMember = z.infer<typeof invitedMember>;

export const inviteBody = z.strictObject({
  email: z.string().trim().max(EMAIL_CHARS_MAX).pipe(z.email()),
  role: memberRole,
});
export type InviteBody = z.infer<typeof inviteBody>;

export const acceptBody = z.strictObject({ token: z.string().min(1).max(TOKEN_CHARS_MAX).describe('From the mail') });
export const roleBody = z.strictObject({ role: memberRole });

export const memberParams = z.object({ org_id: z.string(), user_id: z.string() });
const api_keys = z.array(keyEffect);
export const changedMember = memberItem
  .extend({
    api_keys: api_keys.describe(
      'API keys of the member whose permissions the new role changed; empty where it changed none',
    ),
  })
  .meta({ id: 'ChangedMember' });
export const deletedMember = z.object({
  user_id: z.string(),
  deleted: z.literal(true),
  api_keys: api_keys.describe('API keys of the member; all of them are revoked'),
});

export const transferItem = z
  .object({
    transfer_id: z.string(),
    status: z
      .enum(['pending', 'effective', 'expired', 'cancelled'])
      .describe('cancelled: withdrawn, or one of the two left the org or lost the role for it'),
    new_owner_user_id: z.string(),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'Transfer' });
export type TransferItem = z.infer<typeof transferItem>;

export const requestedTransfer = transferItem.extend({ token: devToken }).meta({ id: 'RequestedTransfer' });
export type RequestedTransfer = z.infer<typeof requestedTransfer>;

export const transferBody = z.strictObject({ new_owner_user_id: userId });
export const deletedTransfer = z.object({ transfer_id: z.string(), deleted: z.literal(true) });
