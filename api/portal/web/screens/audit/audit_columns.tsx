// The columns of the audit log.
import type { ReactElement } from 'react';
import { Link } from 'wouter';
import { Name } from '../../trace/name.tsx';
import { preview } from '../../trace/text/one_line.ts';
import { Chip } from '../../ui/chip.tsx';
import type { Column } from '../../ui/data_table.tsx';
import { Moment } from '../../ui/moment.tsx';
import lists from '../sessions/sessions.module.css';
import styles from './audit.module.css';
import type { AuditRecord } from './audit_data.ts';
import { changesOf, targetPath, valueWords } from './audit_words.ts';

const WORDS_CHARS_MAX = 300;
const ACTORS = { user: 'Person', api_key: 'Key', operator: 'Operator', system: 'System' } as const;

/** The person, key or part of the service that made a change. */
export function Actor({ record: { actor } }: { record: AuditRecord }): ReactElement {
  return (
    <span className={styles.target}>
      <span className={styles.kind}>{ACTORS[actor.type]}</span>
      <Name>{actor.id}</Name>
    </span>
  );
}

/** What was changed, as a link where it has a page. */
export function Target({ org_id, record }: { org_id: string; record: AuditRecord }): ReactElement {
  const path = targetPath(record);
  const { type, id } = record.target;
  const name = <Name>{id === '' ? 'not known' : id}</Name>;
  return (
    <span className={styles.target}>
      <span className={styles.kind}>{type}</span>
      {path === null ? name : <Link href={`/o/${encodeURIComponent(org_id)}${path}`}>{name}</Link>}
    </span>
  );
}

/** Says that it is not known whether the change happened. */
export function Unknown({ record: { outcome } }: { record: AuditRecord }): ReactElement | null {
  return outcome === 'unknown' ? <Chip tone="warn">Outcome unknown</Chip> : null;
}

/** Returns the changes of a record in one line. */
function changeWords(record: AuditRecord): string {
  const parts = changesOf(record).map(({ field, from, to }) =>
    from === undefined ? `${field}: ${valueWords(to)}` : `${field}: ${valueWords(from)} → ${valueWords(to)}`,
  );
  return preview(parts.join(', '), WORDS_CHARS_MAX);
}

export function columnsOf(org_id: string, narrow: boolean): Column<AuditRecord>[] {
  const changes = (record: AuditRecord): ReactElement => (
    <>
      <Unknown record={record} />
      <bdi className={lists.name} title={changeWords(record)}>
        {changeWords(record)}
      </bdi>
    </>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Change',
        width: 'minmax(0, 1fr)',
        cell: (record) => (
          <span className={lists.lines}>
            <span className={lists.line}>
              <span className={lists.grow}>{record.action}</span>
              <Moment at={record.created_at} />
            </span>
            <span className={lists.second}>
              <span className={lists.grow}>
                <Target org_id={org_id} record={record} />
              </span>
              <Unknown record={record} />
            </span>
          </span>
        ),
      },
    ];
  return [
    { id: 'at', head: 'Time', width: '132px', cell: ({ created_at }) => <Moment at={created_at} /> },
    { id: 'actor', head: 'Changed by', width: 'minmax(140px, 2fr)', cell: (record) => <Actor record={record} /> },
    { id: 'action', head: 'Action', width: 'minmax(184px, 1fr)', cell: ({ action }) => action },
    {
      id: 'target',
      head: 'Target',
      width: 'minmax(208px, 2fr)',
      cell: (record) => <Target org_id={org_id} record={record} />,
    },
    { id: 'changes', head: 'Changes', width: 'minmax(136px, 3fr)', cell: changes },
    { id: 'ip', head: 'From', width: '112px', cell: ({ ip }) => ip ?? '' },
  ];
}
