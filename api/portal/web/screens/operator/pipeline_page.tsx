// The state of the whole service: its checks, the workers with their backlog, the partitions with their owners, the
// streams with their fill, and the store. A part that cannot be read says so, and the rest stays.
import { useQuery } from '@tanstack/react-query';
import type { ReactElement, ReactNode } from 'react';
import { type Answer, apiQuery } from '../../client/api.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { bytes, count, duration, exact, NONE, percent } from '../../text/format.ts';
import { Chip } from '../../ui/chip.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import styles from './operator.module.css';
import { SmallTable } from '../judges/small_table.tsx';
import { Waiting } from './waiting.tsx';

type Status = Answer<'/admin/status'>['data'];

const REFRESH_MS = 3000;

/** The page. */
export default function PipelinePage(): ReactElement {
  const status = useQuery({ ...apiQuery(null, '/admin/status', {}), refetchInterval: REFRESH_MS });
  usePageRequest('/admin/status');
  if (status.data === undefined) return <Waiting query={status} what="the state of the service" rows={16} />;
  const { data } = status.data;
  return (
    <div className={styles.page}>
      {status.isError && (
        <ErrorPanel error={status.error} what="the newest state" onRetry={() => void status.refetch()} />
      )}
      <Checks readiness={data.readiness} />
      <Section title="Workers">
        {data.workers.length === 0 ? (
          <p className={styles.bad}>No worker is alive. Ingest goes on; telemetry lands once a worker starts.</p>
        ) : (
          <Workers workers={data.workers} />
        )}
      </Section>
      <Section title="Partitions">
        <Partitions partitions={data.partitions} />
      </Section>
      <Section title="Streams">
        {data.streams === null ? (
          <p className={styles.bad}>NATS does not answer, so the streams cannot be read.</p>
        ) : (
          <Streams streams={data.streams} />
        )}
      </Section>
      <Section title="Store">
        {data.store === null ? (
          <p className={styles.bad}>ClickHouse does not answer. Ingest goes on, and nothing is lost.</p>
        ) : (
          <Store store={data.store} />
        )}
      </Section>
    </div>
  );
}

function Section({ title, children }: { title: string; children: ReactNode }): ReactElement {
  return (
    <section className={styles.section}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

const CHECKS = { nats: 'NATS', clickhouse: 'ClickHouse', consumers: 'Workers', budgets: 'Budgets' } as const;

function Checks({ readiness }: { readiness: Status['readiness'] }): ReactElement {
  const names = Object.keys(CHECKS) as (keyof typeof CHECKS)[];
  return (
    <ul className={styles.checks} aria-label="Checks">
      {names.map((name) => {
        const ok = readiness.checks[name] === 'ok';
        return (
          <li key={name}>
            <Chip tone={ok ? 'ok' : 'error'}>
              {CHECKS[name]}: {ok ? 'ok' : 'down'}
            </Chip>
          </li>
        );
      })}
    </ul>
  );
}

function Workers({ workers }: { workers: Status['workers'] }): ReactElement {
  return (
    <SmallTable
      label="Workers"
      heads={['Worker', 'State', 'Heard', 'Partitions', 'Lag', 'Messages behind', 'Open traces', 'Texts waiting']}
      rows={workers.map(({ worker_id, up, heard_ms, partitions, backlog }) => ({
        key: worker_id,
        cells: [
          <code>{worker_id}</code>,
          up ? 'up' : <Chip tone="warn">starting</Chip>,
          `${duration(heard_ms)} ago`,
          partitions.length === 0 ? NONE : partitions.join(', '),
          backlog === null ? NONE : duration(backlog.lag_seconds * 1000),
          backlog === null ? NONE : count(backlog.lag_messages),
          backlog === null ? NONE : count(backlog.open_traces),
          backlog === null ? NONE : count(backlog.texts_waiting),
        ],
      }))}
    />
  );
}

function Partitions({ partitions }: { partitions: Status['partitions'] }): ReactElement {
  return (
    <SmallTable
      label="Partitions"
      heads={['Partition', 'State', 'Owner', 'Ownership', 'Landed up to', 'Changed']}
      rows={partitions.map(({ partition, state, owner, epoch, checkpoint, changed_at }) => ({
        key: String(partition),
        cells: [
          String(partition),
          state === 'up' ? 'up' : <Chip tone={state === 'unowned' ? 'error' : 'warn'}>{state}</Chip>,
          owner === null ? NONE : <code>{owner}</code>,
          epoch === null ? NONE : exact(epoch),
          checkpoint === null ? NONE : exact(checkpoint),
          <Moment at={changed_at} form="ago" />,
        ],
      }))}
    />
  );
}

function Streams({ streams }: { streams: NonNullable<Status['streams']> }): ReactElement {
  return (
    <SmallTable
      label="Streams"
      heads={['Stream', 'Messages', 'Size', 'Limit', 'Full']}
      rows={streams.map(({ name, messages, bytes: size, max_bytes }) => {
        const share = max_bytes > 0 ? size / max_bytes : null;
        const full = percent(share);
        return {
          key: name,
          cells: [
            <code>{name}</code>,
            count(messages),
            bytes(size),
            max_bytes > 0 ? bytes(max_bytes) : NONE,
            share !== null && share >= 0.8 ? <span className={styles.bad}>{full}</span> : full,
          ],
        };
      })}
    />
  );
}

function Store({ store }: { store: NonNullable<Status['store']> }): ReactElement {
  const { parts_max, free_bytes, total_bytes } = store;
  return (
    <dl className={styles.facts}>
      <dt>Free disk</dt>
      <dd>
        {bytes(free_bytes)} of {bytes(total_bytes)} ({percent(total_bytes > 0 ? free_bytes / total_bytes : null)})
      </dd>
      <dt>Parts of the fullest table partition</dt>
      <dd>{count(parts_max)}</dd>
    </dl>
  );
}
