// Routes of the transfer of an org's ownership.
import { definePersonRoute, defineRoute, type Route } from '../../http/route.ts';
import { acceptBody, deletedTransfer, requestedTransfer, transferBody, transferItem } from './member_schema.ts';
import { askForTransfer, dropTransfer, type MembersDeps, shownTransfer, takeOwnership } from './members.ts';
import { orgParams } from './schema.ts';

export function transferRoutes(deps: MembersDeps): Route[] {
  return [
    defineRoute({
      method: 'post',
      path: '/orgs/:org_id/transfer',
      operation_id: 'requestTransfer',
      summary: 'Offer the ownership of the org to a member',
      description: 'The new owner gets a mail and can accept for 24 hours; then the caller becomes an admin.',
      tag: 'Organization',
      permission: 'org:transfer',
      status: 201,
      secret: deps.showTokens,
      params: orgParams,
      body: transferBody,
      example: { new_owner_user_id: 'user_2' },
      response: requestedTransfer,
      errors: ['member_not_found', 'conflict'],
      audit: { action: 'transfer.request', target: 'transfer' },
      handler: async ({ credential, body, audit }) => {
        const transfer = await askForTransfer(deps, credential, body.new_owner_user_id);
        audit.target(transfer.transfer_id);
        audit.changes({ new_owner_user_id: transfer.new_owner_user_id });
        return { data: transfer };
      },
    }),
    defineRoute({
      method: 'get',
      path: '/orgs/:org_id/transfer',
      operation_id: 'getTransfer',
      summary: 'The last transfer of ownership; null when there never was one',
      tag: 'Organization',
      permission: 'org:read',
      params: orgParams,
      response: transferItem.nullable(),
      handler: ({ org_id }) => ({ data: shownTransfer(deps, org_id) }),
    }),
    defineRoute({
      method: 'delete',
      path: '/orgs/:org_id/transfer',
      operation_id: 'withdrawTransfer',
      summary: 'Withdraw the transfer that waits for its acceptance',
      tag: 'Organization',
      permission: 'org:transfer',
      params: orgParams,
      response: deletedTransfer,
      errors: ['conflict'],
      audit: { action: 'transfer.withdraw', target: 'transfer' },
      handler: async ({ org_id, audit }) => {
        const transfer_id = await dropTransfer(deps, org_id);
        audit.target(transfer_id);
        return { data: { transfer_id, deleted: true as const } };
      },
    }),
    definePersonRoute({
      method: 'post',
      path: '/orgs/:org_id/transfer/accept',
      operation_id: 'acceptTransfer',
      summary: 'Become the owner of the org',
      tag: 'Organization',
      params: orgParams,
      body: acceptBody,
      example: { token: 'from-the-mail' },
      response: transferItem,
      errors: ['expired', 'forbidden'],
      audit: { action: 'transfer.accept', target: 'transfer' },
      handler: async ({ credential, params, body, audit }) => {
        const { transfer, from_user_id } = await takeOwnership(deps, params.org_id, credential, body.token);
        audit.target(transfer.transfer_id);
        audit.changes({ owner: { from: from_user_id, to: transfer.new_owner_user_id } });
        return { data: transfer };
      },
    }),
  ];
}
