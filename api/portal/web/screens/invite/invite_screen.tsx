// The page of an invite: the invited person logs in and becomes a member.
import type { ReactElement } from 'react';
import { send } from '../../client/api.ts';
import { AcceptScreen } from './accept_screen.tsx';

/** The page. */
export default function InviteScreen(): ReactElement {
  return (
    <AcceptScreen
      page="invite"
      title="Join an organization"
      action="Accept invite"
      explain={({ org_id, who }) => `You are invited to ${org_id}. You join it as ${who}.`}
      accept={({ org_id, token }) =>
        send(null, 'post', '/orgs/{org_id}/members/accept', { params: { path: { org_id } }, body: { token } })
      }
      done={(org_id) => `You are a member of ${org_id}.`}
    />
  );
}
