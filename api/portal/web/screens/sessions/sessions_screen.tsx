// The list of sessions.
import type { ReactElement } from 'react';
import type { PreloadContext } from '../../shell/routes.tsx';
import { GroupScreen, preloadGroups } from './group_screen.tsx';

/** Asks for the rows. */
export function preload(context: PreloadContext): void {
  preloadGroups('sessions', context);
}

/** The page. */
export default function SessionsScreen(): ReactElement {
  return (
    <GroupScreen
      title="Sessions"
      path="sessions"
      by="session_id"
      hint="A session is a conversation: traces that carry the same session.id. Send it as an attribute of the root span."
    />
  );
}
