// The newest ingest requests of the organization that the service refused, with the reason: a wrong key
// or a wrong shape shows here instead of as silence. Read again while the page is visible.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { count } from '../../text/format.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import styles from './start.module.css';

/** Time between two reads; a hidden tab does not read. */
const READ_MS = 5_000;
const SHOWN = 10;

/** The list of refused requests. */
export function Refused(): ReactElement | null {
  const { org_id, can } = useOrganization();
  const refusals = useQuery({
    ...apiQuery(org_id, '/v1/ingest/refusals', {}),
    enabled: can('traces:read'),
    refetchInterval: READ_MS,
  });
  usePageRequest('/v1/ingest/refusals');
  if (!can('traces:read')) return null;
  const { data, error } = refusals;
  const all = data?.data ?? [];
  return (
    <div className={styles.refused}>
      <h3>Refused requests</h3>
      {data === undefined && error !== null && (
        <ErrorPanel
          error={error}
          what="the refused requests"
          onRetry={() => {
            void refusals.refetch();
          }}
        />
      )}
      {data !== undefined && all.length === 0 && (
        <p className={styles.hint}>
          No request was refused since the service started. A request with a wrong key or a wrong body is listed here
          with the reason.
        </p>
      )}
      <ul className={styles.refusals} aria-label="Refused requests" aria-live="polite">
        {all.slice(0, SHOWN).map(({ at, path, code, detail, key_prefix }, index) => (
          <li key={`${at} ${index}`} className={styles.refusal}>
            <span className={styles.refusalHead}>
              <Moment at={at} />
              <code>{path}</code>
              <code className={styles.refusalCode}>{code}</code>
              <span className={styles.hint}>
                {key_prefix === null ? 'without a key' : `with the key ${key_prefix}…`}
              </span>
            </span>
            <span>{detail}</span>
          </li>
        ))}
      </ul>
      {all.length > SHOWN && <p className={styles.hint}>{count(all.length - SHOWN)} older ones are not shown.</p>}
    </div>
  );
}
