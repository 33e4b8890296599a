// The list of end users.
import type { ReactElement } from 'react';
import { get } from '../../client/api.ts';
import { GroupScreen } from './group_screen.tsx';

/** The page. */
export default function UsersScreen(): ReactElement {
  return (
    <GroupScreen
      title="Users"
      path="users"
      by="user_id"
      hint="A user is a person who uses your application. Traces with the same user.id belong to one user. Send it as an attribute of the root span."
      read={async (org_id, query, signal) => {
        const { data, meta } = await get(org_id, '/v1/users', { query: query }, { signal });
        return { data: data.map(({ user_id, ...sums }) => ({ id: user_id, ...sums })), meta };
      }}
    />
  );
}
