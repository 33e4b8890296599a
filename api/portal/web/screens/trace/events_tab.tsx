// The tab Events and links: what an OpenTelemetry span recorded, and the spans it is linked to.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { useOrganization } from '../../client/session.ts';
import { duration } from '../../text/format.ts';
import { EmptyState } from '../../ui/empty_state.tsx';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { Name, shownName } from '../../trace/name.tsx';
import type { SpanDetail } from './trace_api.ts';
import styles from './span_panel.module.css';

export function EventsTab({ detail }: { detail: SpanDetail }): ReactElement {
  const { org_id } = useOrganization();
  const { events, links, started_at } = detail;
  if (events.length === 0 && links.length === 0)
    return (
      <EmptyState title="No events and no links">
        OpenTelemetry spans show the events that they recorded and the spans that they are linked to.
      </EmptyState>
    );
  return (
    <>
      {events.map(({ name, at, attributes }, index) => (
        <section key={index} className={styles.section}>
          <div className={styles.sectionHead}>
            <h3>
              <Name>{shownName(name)}</Name>
            </h3>
            {at !== null && (
              <span className={styles.quiet}>
                {duration(Date.parse(at) - Date.parse(started_at))} after the start of the span
              </span>
            )}
          </div>
          {Object.keys(attributes).length > 0 && (
            <JsonViewer given={{ value: attributes }} label={`Attributes of ${name}`} />
          )}
        </section>
      ))}
      {links.map(({ trace_id, span_id, attributes }, index) => (
        <section key={index} className={styles.section}>
          <div className={styles.sectionHead}>
            <h3>Link to</h3>
            <Link href={`/o/${org_id}/traces/${encodeURIComponent(trace_id)}?span=${encodeURIComponent(span_id)}`}>
              <Name>{`${trace_id} ${span_id}`}</Name>
            </Link>
          </div>
          {Object.keys(attributes).length > 0 && (
            <JsonViewer given={{ value: attributes }} label="Attributes of the link" />
          )}
        </section>
      ))}
    </>
  );
}
