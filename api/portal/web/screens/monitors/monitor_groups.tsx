// The groups of a monitor as they were last evaluated: alerts first.
import type { ReactElement } from 'react';
import { count } from '../../text/format.ts';
import { Moment } from '../../ui/moment.tsx';
import { SmallTable } from '../judges/small_table.tsx';
import lists from '../sessions/sessions.module.css';
import type { Monitor } from './draft.ts';
import { groupWords, plain } from './monitor_words.ts';
import styles from './monitors.module.css';
import { StateMark } from './state_mark.tsx';

interface MonitorGroupsProps {
  monitor: Monitor;
  format: (value: number | null) => string;
}

/** The section. */
export function MonitorGroups({ monitor, format }: MonitorGroupsProps): ReactElement {
  const { groups, group_by, enabled, truncated } = monitor;
  const [dimension] = group_by;
  return (
    <section className={lists.section}>
      <h2>{dimension === undefined ? 'State' : 'Groups'}</h2>
      {groups.length === 0 ? (
        <p className={styles.quiet}>
          {enabled
            ? 'Not evaluated yet, or no data matches the query. Monitors are evaluated every minute.'
            : 'A disabled monitor is not evaluated.'}
        </p>
      ) : (
        <SmallTable
          label="Groups with their states"
          heads={[dimension === undefined ? 'Group' : plain(dimension), 'State', 'Value', 'Since']}
          rows={groups.map(({ group, state, value, since }) => ({
            key: groupWords(group),
            cells: [
              groupWords(group),
              <StateMark key="state" state={state} />,
              format(value),
              <Moment key="since" at={since} />,
            ],
          }))}
        />
      )}
      {truncated && (
        <p className={styles.quiet}>There are more groups; the {count(100)} most extreme ones are evaluated.</p>
      )}
    </section>
  );
}
