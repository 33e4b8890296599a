// Routes of the ownership transfer of an organization: request, get, withdraw, accept.
import { orgParams } from '../../http/common_params.ts';
import { definePersonRoute, defineRoute, type Route } from '../../http/route.ts';
import { acceptBody, deletedTransfer, requestedTransfer, transferBody, transferItem } from './member_schema.ts';
import { acceptOwnership, cancelTransfer, getTransfer, type MembersDeps, offerOwnership } from './members.ts';

const TAG = 'Organization';

export function transferRoutes(deps: MembersDeps): Route[] {
  return [requestTransferRoute(deps), getTransferRoute(deps), withdrawTransferRoute(deps), acceptTransferRoute(deps)];
}

function requestTransferRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/transfer',
    operation_id: 'requestTransfer',
    summary: 'Request a transfer of ownership',
    description:
      'Offers the ownership of the organization to a member, who receives a mail and can accept within 24 hours. On acceptance the caller becomes an admin. Returns 409 `conflict` while another transfer is pending.',
    tag: TAG,
    permission: 'org:transfer',
    audit: { action: 'transfer.request', target: 'transfer' },
    params: orgParams,
    body: transferBody,
    example: { new_owner_user_id: 'user_2' },
    status: 201,
    response: requestedTransfer,
    secret: deps.showTokens,
    errors: ['member_not_found', 'conflict'],
    handler: async ({ credential, body, audit }) => {
      const transfer = await offerOwnership(deps, credential, body.new_owner_user_id);
      audit.target(transfer.transfer_id);
      audit.changes({ new_owner_user_id: transfer.new_owner_user_id });
      return { data: transfer };
    },
  });
}

function getTransferRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/transfer',
    operation_id: 'getTransfer',
    summary: 'Get the latest ownership transfer',
    description: 'Returns the latest transfer, whatever its status, or `null` if there never was one.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    response: transferItem.nullable(),
    handler: ({ org_id }) => ({ data: getTransfer(deps, org_id) }),
  });
}

function withdrawTransferRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/orgs/:org_id/transfer',
    operation_id: 'withdrawTransfer',
    summary: 'Withdraw an ownership transfer',
    description: 'Cancels the pending transfer. Returns 409 `conflict` if none is pending.',
    tag: TAG,
    permission: 'org:transfer',
    audit: { action: 'transfer.withdraw', target: 'transfer' },
    params: orgParams,
    response: deletedTransfer,
    errors: ['conflict'],
    handler: async ({ org_id, audit }) => {
      const transfer_id = await cancelTransfer(deps, org_id);
      audit.target(transfer_id);
      return { data: { transfer_id, deleted: true as const } };
    },
  });
}

function acceptTransferRoute(deps: MembersDeps): Route {
  return definePersonRoute({
    method: 'post',
    path: '/orgs/:org_id/transfer/accept',
    operation_id: 'acceptTransfer',
    summary: 'Accept an ownership transfer',
    description:
      'Makes the caller the owner of the organization; the previous owner becomes an admin. Only the member to whom the transfer was offered can accept it. An expired transfer returns 410 `expired`.',
    tag: TAG,
    audit: { action: 'transfer.accept', target: 'transfer' },
    params: orgParams,
    body: acceptBody,
    example: { token: 'from-the-mail' },
    response: transferItem,
    errors: ['expired', 'forbidden'],
    handler: async ({ credential, params, body, audit }) => {
      const { transfer, from_user_id } = await acceptOwnership(deps, params.org_id, credential, body.token);
      audit.target(transfer.transfer_id);
      audit.changes({ owner: { from: from_user_id, to: transfer.new_owner_user_id } });
      return { data: transfer };
    },
  });
}
