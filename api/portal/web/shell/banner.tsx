// One line above the page for what concerns every page: the store is away, or the session ends soon.
import { useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useEffect, useState, useSyncExternalStore } from 'react';
import { RequestError } from '../client/error.ts';
import { useSession } from '../client/session.ts';
import styles from './banner.module.css';
import { Icon } from '../ui/icons.tsx';

const WARN_MS = 300_000;
const CHECK_MS = 15_000;

/** The line, or nothing. */
export function Banner(): ReactElement | null {
  const away = useStoreAway();
  const minutes = useMinutesLeft();
  if (!away && minutes === null) return null;
  return (
    <p className={styles.banner} role="status">
      <Icon name="warning" />
      {away
        ? 'The store does not answer, so some pages cannot be read now. Ingest goes on, and nothing is lost.'
        : `Your session ends in ${minutes ?? 0} min. Log in again to keep it.`}
    </p>
  );
}

/** Returns true while a read on this page fails because the store cannot be reached. */
function useStoreAway(): boolean {
  const cache = useQueryClient().getQueryCache();
  return useSyncExternalStore(
    (listener) => cache.subscribe(listener),
    () =>
      cache.findAll({ type: 'active' }).some(({ state }) => {
        const error = state.error ?? state.fetchFailureReason;
        return error instanceof RequestError && error.code === 'upstream_unavailable';
      }),
  );
}

/** Returns the minutes until the session ends when there are at most five; null before. */
function useMinutesLeft(): number | null {
  const expires_at = useSession().data?.expires_at ?? null;
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
