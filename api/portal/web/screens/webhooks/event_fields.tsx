// The choice of events of an endpoint, each with when it fires and the fields of its payload.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { Button } from '../../ui/button.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type CatalogEvent, catalogQuery } from './event_catalog.ts';
import styles from './webhooks.module.css';

interface EventFieldsProps {
  chosen: readonly string[];
  onChange: (chosen: string[]) => void;
  error: string | null;
}

/** The choice. */
export function EventFields({ chosen, onChange, error }: EventFieldsProps): ReactElement {
  const { data, error: failure, refetch } = useQuery(catalogQuery);
  if (failure !== null && data === undefined)
    return <ErrorPanel error={failure} what="the events" onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton rows={8} height={24} />;
  const all = chosen.length === data.length;
  return (
    <fieldset className={styles.events}>
      <legend>Events</legend>
      <div className={styles.line}>
        <span className={styles.grow} role="status">
          {chosen.length} of {data.length} events
        </span>
        <Button
          look="quiet"
          onClick={() => {
            onChange(all ? [] : data.map(({ name }) => name));
          }}
        >
          {all ? 'Choose no event' : 'Choose all events'}
        </Button>
      </div>
      {error !== null && (
        <p role="alert" className={styles.error}>
          {error}
        </p>
      )}
      {data.map((event) => (
        <EventField
          key={event.name}
          event={event}
          checked={chosen.includes(event.name)}
          onChange={(checked) => {
            onChange(checked ? [...chosen, event.name] : chosen.filter((name) => name !== event.name));
          }}
        />
      ))}
    </fieldset>
  );
}

interface EventFieldProps {
  event: CatalogEvent;
  checked: boolean;
  onChange: (checked: boolean) => void;
}

function EventField({ event, checked, onChange }: EventFieldProps): ReactElement {
  return (
    <div className={styles.event}>
      <label className={styles.check}>
        <input
          type="checkbox"
          checked={checked}
          onChange={({ target }) => {
            onChange(target.checked);
          }}
        />
        {event.name}
      </label>
      <EventPayload event={event} />
    </div>
  );
}

/** When an event fires, and its payload behind it. */
export function EventPayload({ event: { fires, fields } }: { event: CatalogEvent }): ReactElement {
  return (
    <details>
      <summary>{fires}</summary>
      <dl className={styles.fields}>
        {fields.map(({ name, type, description }) => (
          <FieldWords key={name} name={name} type={type} description={description} />
        ))}
      </dl>
    </details>
  );
}

function FieldWords({ name, type, description }: CatalogEvent['fields'][number]): ReactElement {
  return (
    <>
      <dt>
        <code>{name}</code>
      </dt>
      <dd>
        {type}
        {description === '' ? '' : `. ${description}`}
      </dd>
    </>
  );
}
