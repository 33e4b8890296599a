// The page of a transfer of ownership: the member to whom an organization is offered becomes its owner.
import type { ReactElement } from 'react';
import { send } from '../../client/api.ts';
import { AcceptScreen } from '../invite/accept_screen.tsx';

/** The page. */
export default function TransferScreen(): ReactElement {
  return (
    <AcceptScreen
      page="transfer"
      title="Become the owner of an organization"
      action="Accept ownership"
      explain={({ org_id, who }) =>
        `The ownership of ${org_id} is offered to you, ${who}. If you accept, the present owner becomes an admin.`
      }
      accept={({ org_id, token }) =>
        send(null, 'post', '/orgs/{org_id}/transfer/accept', { params: { path: { org_id } }, body: { token } })
      }
      done={(org_id) => `You are the owner of ${org_id}.`}
    />
  );
}
