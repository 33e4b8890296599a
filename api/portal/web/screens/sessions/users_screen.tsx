// The list of end users.
import type { ReactElement } from 'react';
import type { PreloadContext } from '../../shell/routes.tsx';
import { GroupScreen, preloadGroups } from './group_screen.tsx';

/** Asks for the rows. */
export function preload(context: PreloadContext): void {
  preloadGroups('users', context);
}

/** The page. */
export default function UsersScreen(): ReactElement {
  return (
    <GroupScreen
      title="Users"
      path="users"
      by="user_id"
      hint="A user is a person who uses your application. Traces with the same user.id belong to one user. Send it as an attribute of the root span."
    />
  );
}
