// The list of sessions.
import type { ReactElement } from 'react';
import { get } from '../../client/api.ts';
import { GroupScreen } from './group_screen.tsx';

/** The page. */
export default function SessionsScreen(): ReactElement {
  return (
    <GroupScreen
      title="Sessions"
      path="sessions"
      by="session_id"
      hint="A session is a conversation: traces that carry the same session.id. Send it as an attribute of the root span."
      read={async (org_id, query, signal) => {
        const { data, meta } = await get(org_id, '/v1/sessions', { query: query }, { signal });
        return { data: data.map(({ session_id, ...sums }) => ({ id: session_id, ...sums })), meta };
      }}
    />
  );
}
