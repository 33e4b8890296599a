// One line above the page for what concerns every page: a part of the service is away or slow, live updates have
// stopped, or the session ends soon.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { apiQuery } from '../client/api.ts';
import { currentHealth, type Health, onHealthChange } from '../client/health.ts';
import { lacksRows, onLackChange } from '../client/query_client.ts';
import { useOrganization, useSession } from '../client/session.ts';
import { isSlow, onSlowChange } from '../client/slow.ts';
import { isLiveLost, onLiveLostChange } from '../live/live_lost.ts';
import styles from './banner.module.css';
import { Icon } from '../ui/icons.tsx';
import { useAfterContent } from './use_after_content.ts';

const WARN_MS = 300_000;
const CHECK_MS = 15_000;
/** Time between two looks at the budget while the page is shown. */
const BUDGET_MS = 60_000;
/** Resources that a budget limits, as the banner names them. */
const LIMITED = { tokens: 'tokens', storage_mb: 'storage', sandbox_seconds: 'sandbox time', cost_usd: 'cost' } as const;
type Limited = keyof typeof LIMITED;

/** The line on a page of a person, or nothing. */
export function Banner(): ReactElement | null {
  return <BannerLine expires_at={useSession().data?.expires_at ?? null} notice={useBudgetNotice()} />;
}

/** Returns the words for a reached hard limit of the organization; null without one, and for people who read no costs. */
function useBudgetNotice(): string | null {
  const { org_id, can } = useOrganization();
  const after = useAfterContent();
  const { data } = useQuery({
    ...apiQuery(org_id, '/v1/budgets', {}),
    enabled: can('costs:read') && after,
    refetchInterval: BUDGET_MS,
  });
  const reached = (Object.keys(LIMITED) as Limited[]).filter((one) => data?.data[one].status === 'hard_exceeded');
  if (reached.length === 0) return null;
  const names = reached.map((one) => LIMITED[one]).join(' and ');
  return `The hard limit on ${names} is reached: ingest is refused until the limit is raised or the period ends.`;
}

/**
 * The line, or nothing.
 * @param props.expires_at end of the session; null: it does not end
 * @param props.notice what concerns the organization; null: nothing
 */
export function BannerLine({
  expires_at,
  notice = null,
}: {
  expires_at: string | null;
  notice?: string | null;
}): ReactElement | null {
  const minutes = useMinutesLeft(expires_at);
  const health = useSyncExternalStore(onHealthChange, currentHealth);
  const slow = useSyncExternalStore(onSlowChange, isSlow);
  const partial = useSyncExternalStore(onLackChange, lacksRows);
  const lost = useSyncExternalStore(onLiveLostChange, isLiveLost);
  const text =
    AWAY[health] ??
    (slow
      ? SLOW
      : partial
        ? PARTIAL
        : lost
          ? LOST
          : minutes === null
            ? notice
            : `Your session ends in ${minutes} min. Log in again to keep it.`);
  if (text === null) return null;
  return (
    <p className={styles.banner} role="status">
      <Icon name="warning" />
      {text}
    </p>
  );
}

const AWAY: Readonly<Record<Health, string | null>> = {
  ok: null,
  silent: 'The service does not answer. This page tries again every few seconds and goes on where it is.',
  nats: 'The service does not reach NATS, so nothing can be changed or sent now. What is stored can be read; this page goes on by itself.',
  store:
    'The store does not answer, so some pages cannot be read now. Ingest goes on, and nothing is lost. This page goes on by itself.',
  workers: 'No pipeline worker is running. Ingest goes on; new telemetry appears once a worker is back.',
};
const SLOW = 'The service is slow to answer. What was here before stays until the answer comes.';
const PARTIAL = 'Part of the store does not answer, so rows are missing here. They appear when it is back.';
const LOST = 'Live updates have stopped. This page connects again by itself and then shows what it missed.';

/** Returns the minutes until the session ends when there are at most five; null before. */
function useMinutesLeft(expires_at: string | null): number | null {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => {
      setNow(Date.now());
    }, CHECK_MS);
    return () => {
      clearInterval(timer);
    };
  }, []);
  if (expires_at === null) return null;
  const left = Date.parse(expires_at) - now;
  return left > 0 && left <= WARN_MS ? Math.ceil(left / 60_000) : null;
}
