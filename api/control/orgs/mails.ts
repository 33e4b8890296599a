// The texts of an org's mails. Names come from people: they are put on one line, so that none can forge lines of the mail.
import { oneLine } from '../../../ops/exchange/mail_queue.ts';
import type { Mail } from '../../../schemas/codec.ts';
import type { MemberRecord, OrgRecord, TransferRecord } from '../../../schemas/records/org.ts';

/** The mail to somebody who was invited. `token` opens the invite and stands in no other place. */
export function inviteMail(org: OrgRecord, member: MemberRecord, token: string, now: number): Mail {
  const name = oneLine(org.name);
  return {
    mail_id: `invite-${member.invite_token_hash?.slice(0, 32) ?? member.user_id}`,
    org_id: org.org_id,
    to: member.email,
    subject: `You are invited to ${name}`,
    text: [
      `You are invited to join ${name} (${org.org_id}) on Millrace as ${member.role}.`,
      '',
      `To accept, sign in with this address (${member.email}) and send:`,
      '',
      `  POST /orgs/${org.org_id}/members/accept`,
      '  Authorization: Bearer <your token>',
      '  Content-Type: application/json',
      '',
      `  {"token": "${token}"}`,
      '',
      `The invite can be accepted until ${member.invite_expires_at ?? ''}. If you did not expect it, you need not do anything.`,
      '',
    ].join('\n'),
    secret: token,
    created_at: now,
  };
}

/** The mail to a member who is to be the new owner. */
export function transferMail(
  org: OrgRecord,
  transfer: TransferRecord,
  to: MemberRecord,
  token: string,
  now: number,
): Mail {
  const name = oneLine(org.name);
  return {
    mail_id: `transfer-${transfer.transfer_id}`,
    org_id: org.org_id,
    to: to.email,
    subject: `You are to own ${name}`,
    text: [
      `The ownership of ${name} (${org.org_id}) on Millrace is offered to you.`,
      'When you accept, you become an owner, and the member who offers it an admin.',
      '',
      'To accept, sign in and send:',
      '',
      `  POST /orgs/${org.org_id}/transfer/accept`,
      '  Authorization: Bearer <your token>',
      '  Content-Type: application/json',
      '',
      `  {"token": "${token}"}`,
      '',
      `The transfer can be accepted until ${transfer.expires_at}. If you do not want it, you need not do anything.`,
      '',
    ].join('\n'),
    secret: token,
    created_at: now,
  };
}
