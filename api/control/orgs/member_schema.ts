// Request and response shapes of members and of ownership transfers. No shape shows the hash of a
// token.
import { z } from 'zod';
import { memberRecord, memberRole } from '../../../schemas/records/org.ts';
import { offsetQuery } from '../../http/pagination.ts';
import { keyEffect } from './member_keys.ts';

const EMAIL_CHARS_MAX = 254;
const TOKEN_CHARS_MAX = 200;
const userId = z.string().min(1).max(128);

export const membersQuery = z.object({
  ...offsetQuery,
  role: memberRole.optional().describe('Members and invites with this role only'),
  status: memberRecord.shape.status.optional().describe('invited lists open invites only, active members only'),
});
export type MembersQuery = z.output<typeof membersQuery>;

export const memberItem = memberRecord
  .pick({ user_id: true, email: true, role: true, status: true, invited_at: true, joined_at: true })
  .extend({ user_id: z.string().describe("sub of the member's tokens. A generated id while the invite is open") })
  .meta({ id: 'Member' });
export type MemberItem = z.infer<typeof memberItem>;

const devToken = z
  .string()
  .optional()
  .describe('The token of the mail. Returned in development only, where mail may not be sent');

export const invitedMember = memberItem.extend({ token: devToken }).meta({ id: 'InvitedMember' });
export type InvitedMember = z.infer<typeof invitedMember>;

export const inviteBody = z.strictObject({
  email: z.string().trim().max(EMAIL_CHARS_MAX).pipe(z.email()),
  role: memberRole,
});
export type InviteBody = z.infer<typeof inviteBody>;

export const acceptBody = z.strictObject({
  token: z.string().min(1).max(TOKEN_CHARS_MAX).describe('Token of the mail'),
});
export const roleBody = z.strictObject({ role: memberRole });

export const memberParams = z.object({ org_id: z.string(), user_id: z.string() });
const api_keys = z.array(keyEffect);
export const changedMember = memberItem
  .extend({
    api_keys: api_keys.describe('API keys of the member whose permissions changed with the role'),
  })
  .meta({ id: 'ChangedMember' });
export const deletedMember = z.object({
  user_id: z.string(),
  deleted: z.literal(true),
  api_keys: api_keys.describe('API keys of the member, all of which are now revoked'),
});

export const transferItem = z
  .object({
    transfer_id: z.string(),
    status: z
      .enum(['pending', 'effective', 'expired', 'cancelled'])
      .describe('cancelled: the transfer was withdrawn, or one of the two members left or lost the required role'),
    new_owner_user_id: z.string(),
    expires_at: z.iso.datetime(),
  })
  .meta({ id: 'Transfer' });
export type TransferItem = z.infer<typeof transferItem>;

export const requestedTransfer = transferItem.extend({ token: devToken }).meta({ id: 'RequestedTransfer' });
export type RequestedTransfer = z.infer<typeof requestedTransfer>;

export const transferBody = z.strictObject({ new_owner_user_id: userId });
export const deletedTransfer = z.object({ transfer_id: z.string(), deleted: z.literal(true) });
