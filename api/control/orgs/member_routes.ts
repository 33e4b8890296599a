// Routes of the members of an organization: list, invite, accept, change role, remove.
import { z } from 'zod';
import { pageMeta } from '../../http/pagination.ts';
import { orgParams } from '../../http/common_params.ts';
import { pageOf } from '../../http/list_pages.ts';
import { definePersonRoute, defineRoute, type Route } from '../../http/route.ts';
import { auditedEffects } from './member_keys.ts';
import {
  acceptBody,
  changedMember,
  deletedMember,
  invitedMember,
  inviteBody,
  memberItem,
  memberParams,
  membersQuery,
  roleBody,
} from './member_schema.ts';
import { acceptMembership, endMembership, inviteMember, listMembers, type MembersDeps, setRole } from './members.ts';

const TAG = 'Organization';

export function memberRoutes(deps: MembersDeps): Route[] {
  return [
    listMembersRoute(deps),
    inviteMemberRoute(deps),
    acceptInviteRoute(deps),
    changeMemberRoleRoute(deps),
    removeMemberRoute(deps),
  ];
}

function listMembersRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'get',
    path: '/orgs/:org_id/members',
    operation_id: 'listMembers',
    summary: 'List members',
    description: 'Returns the members of the organization and the open invites.',
    tag: TAG,
    permission: 'org:read',
    params: orgParams,
    query: membersQuery,
    response: z.array(memberItem),
    meta: pageMeta,
    handler: ({ org_id, query }) => pageOf(listMembers(deps, org_id, query), query),
  });
}

function inviteMemberRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'post',
    path: '/orgs/:org_id/members',
    operation_id: 'inviteMember',
    summary: 'Invite a member',
    description:
      'Sends an invite by mail. The invite expires after 24 hours, and can be accepted only while the inviting member may still invite to its role. Inviting an address again replaces the earlier invite; inviting an active member returns 409 `conflict`.\n\nA caller can invite only to roles whose permissions it holds: a person up to their own role; an API key to a role for whose every permission it has the scope, and never to owner.',
    tag: TAG,
    permission: 'members:invite',
    audit: { action: 'member.invite', target: 'member' },
    params: orgParams,
    body: inviteBody,
    example: { email: 'new@example.com', role: 'member' },
    status: 201,
    response: invitedMember,
    secret: deps.showTokens,
    errors: ['conflict'],
    handler: async ({ credential, body, audit }) => {
      const member = await inviteMember(deps, credential, body);
      audit.target(member.user_id);
      audit.changes({ email: member.email, role: member.role });
      return { data: member };
    },
  });
}

function acceptInviteRoute(deps: MembersDeps): Route {
  return definePersonRoute({
    method: 'post',
    path: '/orgs/:org_id/members/accept',
    operation_id: 'acceptInvite',
    summary: 'Accept an invite',
    description:
      'Makes the caller a member. The email of the token must be the invited address; the `sub` of the token becomes the `user_id` of the member. An expired invite returns 410 `expired`.',
    tag: TAG,
    audit: { action: 'member.accept', target: 'member' },
    params: orgParams,
    body: acceptBody,
    example: { token: 'from-the-mail' },
    response: memberItem,
    errors: ['member_not_found', 'expired', 'conflict', 'forbidden'],
    handler: async ({ credential, params, body, audit }) => {
      const { member, invited_id } = await acceptMembership(deps, params.org_id, credential, body.token);
      audit.target(member.user_id);
      audit.changes({
        user_id: { from: invited_id, to: member.user_id },
        status: { from: 'invited', to: 'active' },
        role: member.role,
      });
      return { data: member };
    },
  });
}

function changeMemberRoleRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'patch',
    path: '/orgs/:org_id/members/:user_id',
    operation_id: 'changeMemberRole',
    summary: 'Change the role of a member',
    description:
      'Within a second, the API keys of the member have at most the permissions of the new role in every process. They regain permissions when the role does. Demoting the last owner returns 409 `conflict`.',
    tag: TAG,
    permission: 'members:role',
    audit: { action: 'member.role_change', target: 'member', param: 'user_id' },
    params: memberParams,
    body: roleBody,
    example: { role: 'admin' },
    response: changedMember,
    errors: ['member_not_found', 'conflict'],
    handler: async ({ org_id, params, body, audit }) => {
      const { member, from, api_keys } = await setRole(deps, org_id, params.user_id, body.role);
      if (from === member.role) audit.nothing();
      else audit.changes({ role: { from, to: member.role }, ...auditedEffects(api_keys) });
      return { data: { ...member, api_keys } };
    },
  });
}

function removeMemberRoute(deps: MembersDeps): Route {
  return defineRoute({
    method: 'delete',
    path: '/orgs/:org_id/members/:user_id',
    operation_id: 'removeMember',
    summary: 'Remove a member',
    description:
      'Removes a member or withdraws an invite. Within a second every process rejects the tokens and API keys of the member, and their grants end. A person who is invited again starts without them. Removing the last owner returns 409 `conflict`.',
    tag: TAG,
    permission: 'members:remove',
    audit: { action: 'member.remove', target: 'member', param: 'user_id' },
    params: memberParams,
    response: deletedMember,
    errors: ['member_not_found', 'conflict'],
    handler: async ({ org_id, params, audit }) => {
      const { member, api_keys } = await endMembership(deps, org_id, params.user_id);
      const { email, role, status } = member;
      audit.changes({ email, role, status, ...auditedEffects(api_keys) });
      return { data: { user_id: params.user_id, deleted: true as const, api_keys } };
    },
  });
}
