// When groups of a monitor began and ended to alert, the newest first.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { type Answer, apiQuery } from '../../client/api.ts';
import { useOrganization } from '../../client/session.ts';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { SmallTable } from '../judges/small_table.tsx';
import lists from '../sessions/sessions.module.css';
import { REREAD_MS } from './monitor_api.ts';
import { groupWords } from './monitor_words.ts';
import styles from './monitors.module.css';

type Change = Answer<'/v1/monitors/{monitor_id}/changes'>['data'][number];

const LIMIT = 100;
const REASONS: Readonly<Record<NonNullable<Change['reason']>, string>> = {
  ok: 'within the threshold',
  no_data: 'no data',
  changed: 'the query was changed',
  disabled: 'the monitor was disabled',
  deleted: 'the monitor was deleted',
};

interface MonitorChangesProps {
  monitor_id: string;
  format: (value: number | null) => string;
}

/** The section. */
export function MonitorChanges({ monitor_id, format }: MonitorChangesProps): ReactElement {
  const { org_id } = useOrganization();
  const changes = useQuery({
    ...apiQuery(org_id, '/v1/monitors/{monitor_id}/changes', { path: { monitor_id }, query: { limit: LIMIT } }),
    refetchInterval: REREAD_MS,
  });
  const { data, error } = changes;
  return (
    <section className={lists.section} aria-busy={changes.isPending}>
      <h2>Changes</h2>
      {error !== null && data === undefined ? (
        <ErrorPanel error={error} what="the changes" onRetry={() => void changes.refetch()} />
      ) : data === undefined ? (
        <Skeleton rows={3} height={20} />
      ) : data.data.length === 0 ? (
        <p className={styles.quiet}>No alert yet. This table shows when alerts began and ended.</p>
      ) : (
        <SmallTable
          label="Changes of the monitor"
          heads={['Time', 'Group', 'Change', 'Value', 'Notified']}
          rows={data.data.map((change, at) => ({
            key: `${change.at} ${groupWords(change.group)} ${at}`,
            cells: [
              <Moment key="at" at={change.at} />,
              groupWords(change.group),
              wordsOf(change),
              format(change.value),
              change.notified ? 'Yes' : 'No, muted',
            ],
          }))}
        />
      )}
    </section>
  );
}

const wordsOf = ({ reason }: Change): string => (reason === null ? 'Alerting' : `Resolved: ${REASONS[reason]}`);
