// One end user: sums, cost by day, sessions, and the traces as a link.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { apiQuery } from '../../client/api.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count, money, percent } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { CostDays } from './cost_days.tsx';
import { OneGroup, useOneGroup } from './one_group.tsx';
import { Sum, Sums } from './sums.tsx';
import styles from './sessions.module.css';

const DAYS = 30;
const SESSIONS_SHOWN = 50;

/** The page. */
export default function UserScreen(): ReactElement {
  const { org_id, id: user_id, root } = useOneGroup();
  usePageRequest(`/v1/users/${encodeURIComponent(user_id)}?days=${DAYS}`);
  const user = useQuery(
    apiQuery(org_id, '/v1/users/{user_id}', { path: { user_id }, query: { days: DAYS, limit: 1 } }),
  );
  return (
    <OneGroup
      kind="user"
      id={user_id}
      traces={{ href: `${root}/traces?user_id=${encodeURIComponent(user_id)}&t=90d`, label: 'Show traces' }}
      answer={{ data: user.data?.data, error: user.error, refetch: user.refetch }}
    >
      {(data) => (
        <>
          <Sums sums={data}>
            <Sum name="Sessions">{count(data.sessions)}</Sum>
          </Sums>
          <section className={styles.section}>
            <h2>Cost by day</h2>
            <CostDays days={data.by_day} />
          </section>
          <UserSessions org_id={org_id} user_id={user_id} />
        </>
      )}
    </OneGroup>
  );
}

function UserSessions({ org_id, user_id }: { org_id: string; user_id: string }): ReactElement {
  const sessions = useQuery(apiQuery(org_id, '/v1/sessions', { query: { user_id, limit: SESSIONS_SHOWN } }));
  const { data, error } = sessions;
  const root = `/o/${encodeURIComponent(org_id)}`;
  return (
    <section className={styles.section}>
      <h2>Sessions</h2>
      {error !== null && data === undefined && (
        <ErrorPanel
          error={error}
          what="the sessions"
          onRetry={() => {
            void sessions.refetch();
          }}
        />
      )}
      {sessions.isPending && <Skeleton rows={5} height={16} />}
      {data?.data.length === 0 && (
        <EmptyState title="No sessions">The traces of this user carry no session.id.</EmptyState>
      )}
      <ul className={styles.cards}>
        {data?.data.map((session) => (
          <li key={session.session_id} className={styles.card}>
            <Link href={`${root}/sessions/${encodeURIComponent(session.session_id)}`} className={styles.cardName}>
              {session.session_id}
            </Link>
            <Moment at={session.last_seen} />
            <span>
              {count(session.traces)} {session.traces === 1 ? 'trace' : 'traces'}
            </span>
            <span className={session.failed_traces > 0 ? styles.failed : styles.quiet}>
              {session.failed_traces > 0
                ? `${count(session.failed_traces)} failed (${percent(session.failed_share)})`
                : '0 failed'}
            </span>
            <span>{money(session.cost_usd)}</span>
          </li>
        ))}
      </ul>
      {data !== undefined && data.meta.total > SESSIONS_SHOWN && (
        <ButtonLink href={`${root}/sessions?user_id=${encodeURIComponent(user_id)}&t=90d`}>
          Show all {count(data.meta.total)} sessions
        </ButtonLink>
      )}
    </section>
  );
}
