// The table of sessions or of users: how much each did, what it cost, and its traces over time.
import type { ReactElement, ReactNode } from 'react';
import { Link } from 'wouter';
import { compact, count, money, moneyExact, percent } from '../../text/format.ts';
import type { Column } from '../../ui/data_table.tsx';
import { Moment } from '../../ui/moment.tsx';
import { ActivityCell } from './activity_cell.tsx';
import styles from './sessions.module.css';

/** Figures of a session or a user. */
export interface Group {
  id: string;
  traces: number;
  failed_traces: number;
  failed_share: number;
  cost_usd: number;
  input_tokens: number;
  output_tokens: number;
  first_seen: string;
  last_seen: string;
}

interface GroupColumns {
  /** Title of the first column. */
  title: string;
  narrow: boolean;
  hrefOf: (id: string) => string;
}

/** Returns the columns of the table. */
export function groupColumns({ title, narrow, hrefOf }: GroupColumns): Column<Group>[] {
  const name = (group: Group): ReactElement => (
    <Link href={hrefOf(group.id)} className={styles.name} tabIndex={-1} title={group.id}>
      {group.id}
    </Link>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: title,
        width: 'minmax(0, 1fr)',
        cell: (group) => <Lines group={group} name={name(group)} />,
      },
    ];
  return [
    { id: 'id', head: title, width: 'minmax(176px, 3fr)', cell: name },
    { id: 'last_seen', head: 'Last seen', width: '124px', cell: ({ last_seen }) => <Moment at={last_seen} /> },
    { id: 'first_seen', head: 'First seen', width: '124px', cell: ({ first_seen }) => <Moment at={first_seen} /> },
    { id: 'activity', head: 'Activity', width: '128px', cell: ({ id }) => <ActivityCell id={id} /> },
    { id: 'traces', head: 'Traces', width: '72px', align: 'end', cell: ({ traces }) => count(traces) },
    { id: 'failed', head: 'Failed', width: '104px', align: 'end', cell: (group) => <Failed group={group} /> },
    {
      id: 'cost',
      head: 'Cost',
      width: '96px',
      align: 'end',
      cell: ({ cost_usd }) => <span title={moneyExact(cost_usd)}>{money(cost_usd)}</span>,
    },
    {
      id: 'tokens',
      head: 'Tokens',
      width: '96px',
      align: 'end',
      cell: ({ input_tokens, output_tokens }) => compact(input_tokens + output_tokens),
    },
  ];
}

function Failed({ group: { failed_traces, failed_share } }: { group: Group }): ReactElement {
  if (failed_traces === 0) return <span className={styles.quiet}>0</span>;
  return (
    <span className={styles.failed}>
      {count(failed_traces)} <span className={styles.share}>({percent(failed_share)})</span>
    </span>
  );
}

function Lines({ group, name }: { group: Group; name: ReactNode }): ReactElement {
  return (
    <span className={styles.lines}>
      <span className={styles.line}>
        <span className={styles.grow}>{name}</span>
        <Moment at={group.last_seen} form="ago" />
      </span>
      <span className={styles.second}>
        <span>
          {count(group.traces)} {group.traces === 1 ? 'trace' : 'traces'}
        </span>
        <span className={styles.grow}>{group.failed_traces > 0 ? `${count(group.failed_traces)} failed` : ''}</span>
        <span>{money(group.cost_usd)}</span>
      </span>
    </span>
  );
}
