// The events of an endpoint, with when each fires and its payload.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { catalogQuery } from './event_catalog.ts';
import { EventPayload } from './event_fields.tsx';
import styles from './webhooks.module.css';

/** The list. @param names events to list; absent for all of the catalog */
export function WebhookEvents({ names }: { names?: readonly string[] }): ReactElement {
  const { data, error, refetch } = useQuery(catalogQuery);
  if (error !== null && data === undefined)
    return <ErrorPanel error={error} what="the events" onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton rows={12} height={24} />;
  return (
    <ul className={styles.events} aria-label="Events">
      {data
        .filter(({ name }) => names === undefined || names.includes(name))
        .map((event) => (
          <li key={event.name} className={styles.event}>
            <code>{event.name}</code>
            <EventPayload event={event} />
          </li>
        ))}
    </ul>
  );
}
