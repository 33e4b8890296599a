// One record of the audit log, with each changed field before and after.
import type { ReactElement } from 'react';
import { useOrganization } from '../../client/session.ts';
import { NONE } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { CopyButton } from '../../ui/copy_button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Moment } from '../../ui/moment.tsx';
import lists from '../sessions/sessions.module.css';
import styles from './audit.module.css';
import { Actor, Target, Unknown } from './audit_columns.tsx';
import type { AuditRecord } from './audit_data.ts';
import { changesOf, valueWords } from './audit_words.ts';

/** The open dialog. */
export function RecordDialog({ record, onClose }: { record: AuditRecord; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const { request_id, ip } = record;
  const facts: [string, ReactElement | string][] = [
    ['Time', <Moment key="at" at={record.created_at} form="full" />],
    ['Changed by', <Actor key="actor" record={record} />],
    ['Target', <Target key="target" org_id={org_id} record={record} />],
    ['From', ip ?? NONE],
    ['Request', request_id === null ? NONE : <code key="request">{oneLine(request_id)}</code>],
  ];
  return (
    <Dialog
      title={record.action}
      form="wide"
      onClose={onClose}
      footer={<CopyButton text={() => JSON.stringify(record, null, 2)} label="Copy record" labelled />}
    >
      <div className={styles.body}>
        {record.outcome === 'unknown' && (
          <p>
            <Unknown record={record} /> The service stopped in the middle of this change, so it may or may not have
            happened.
          </p>
        )}
        <dl className={lists.sums}>
          {facts.map(([label, value]) => (
            <div key={label} className={styles.fact}>
              <dt>{label}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
        <Changes record={record} />
      </div>
    </Dialog>
  );
}

function Changes({ record }: { record: AuditRecord }): ReactElement {
  const changes = changesOf(record);
  if (changes.length === 0) return <p>The record names no fields.</p>;
  return (
    <table className={styles.changes}>
      <thead>
        <tr>
          {['Field', 'Before', 'After'].map((head) => (
            <th key={head} scope="col">
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {changes.map(({ field, from, to }) => (
          <tr key={field}>
            <th scope="row">{oneLine(field)}</th>
            <td>{from === undefined ? NONE : <bdi>{valueWords(from)}</bdi>}</td>
            <td>
              <bdi>{valueWords(to)}</bdi>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
