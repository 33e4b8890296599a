// The texts of an organization's mails. Names that people chose are put on one line, so that a name
// cannot forge lines of the mail.
import { oneLine } from '../../../ops/exchange/mail_queue.ts';
import type { Mail } from '../../../schemas/codec.ts';
import type { MemberRecord, OrgRecord, TransferRecord } from '../../../schemas/records/org.ts';

export interface MailContext {
  /** Milliseconds since the epoch. */
  now: number;
  /** Origin of the portal; null where the settings name none. */
  portal: string | null;
}

/**
 * Returns the lines that say how to accept: the page of the portal, or else the request. The page takes the organization
 * and the token out of the fragment, which reaches no log.
 */
function wayTo(
  who: string,
  portal: string | null,
  page: 'invite' | 'transfer',
  path: string,
  { org_id, token }: { org_id: string; token: string },
): string[] {
  const signIn = who === '' ? 'sign in' : `sign in ${who}`;
  if (portal !== null)
    return [`To accept, open this page and ${signIn}:`, '', `  ${portal}/${page}#${org_id}.${token}`];
  return [
    `To accept, ${signIn} and send:`,
    '',
    `  POST ${path}`,
    '  Authorization: Bearer <your token>',
    '  Content-Type: application/json',
    '',
    `  {"token": "${token}"}`,
  ];
}

/** Returns the mail to an invited person. `token` accepts the invite and appears nowhere else. */
export function inviteMail(org: OrgRecord, member: MemberRecord, token: string, { now, portal }: MailContext): Mail {
  const name = oneLine(org.name);
  return {
    mail_id: `invite-${member.invite_token_hash?.slice(0, 32) ?? member.user_id}`,
    org_id: org.org_id,
    to: member.email,
    subject: `You are invited to ${name}`,
    text: [
      `You are invited to join ${name} (${org.org_id}) on Millrace as ${member.role}.`,
      '',
      ...wayTo(`with this address (${member.email})`, portal, 'invite', `/orgs/${org.org_id}/members/accept`, {
        org_id: org.org_id,
        token,
      }),
      '',
      `The invite can be accepted until ${member.invite_expires_at ?? ''}. If you did not expect it, ignore this mail.`,
      '',
    ].join('\n'),
    secret: token,
    created_at: now,
  };
}

/** Returns the mail to the member to whom the ownership is offered. */
export function transferMail(
  org: OrgRecord,
  transfer: TransferRecord,
  to: MemberRecord,
  token: string,
  { now, portal }: MailContext,
): Mail {
  const name = oneLine(org.name);
  return {
    mail_id: `transfer-${transfer.transfer_id}`,
    org_id: org.org_id,
    to: to.email,
    subject: `Ownership of ${name} is offered to you`,
    text: [
      `The ownership of ${name} (${org.org_id}) on Millrace is offered to you.`,
      'If you accept, you become the owner, and the member who offers it becomes an admin.',
      '',
      ...wayTo('', portal, 'transfer', `/orgs/${org.org_id}/transfer/accept`, { org_id: org.org_id, token }),
      '',
      `The transfer can be accepted until ${transfer.expires_at}. If you do not want it, ignore this mail.`,
      '',
    ].join('\n'),
    secret: token,
    created_at: now,
  };
}
