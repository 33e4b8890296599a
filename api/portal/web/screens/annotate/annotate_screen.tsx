// The list of annotation queues: how far each is, and the way to a new one.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { useCursor } from '../../lists/use_cursor.ts';
import { useNarrow } from '../../lists/use_narrow.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count, NONE } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import { type Column, DataTable } from '../../ui/data_table.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { type Queue, queuesQuery } from './annotate_api.ts';
import { QueueDialog } from './queue_dialog.tsx';
import styles from './annotate.module.css';

/** Starts the request of the page. */
export const preload: Preload = ({ org_id }) => {
  readAhead(queryClient.query(queuesQuery(org_id)));
};

/** The page. */
export default function AnnotateScreen(): ReactElement {
  const { org_id, can } = useOrganization();
  const [, navigate] = useLocation();
  const [creates, setCreates] = useState(false);
  const query = useQuery(queuesQuery(org_id));
  const queues = query.data?.data ?? [];
  const root = `/o/${encodeURIComponent(org_id)}/annotate`;
  const hrefOf = (queue_id: string): string => `${root}/${encodeURIComponent(queue_id)}`;
  const create = (): void => {
    setCreates(true);
  };
  usePageRequest('/v1/annotation-queues');
  const button = can('judges:write') ? (
    <Button icon="plus" keys="n" look="primary" onClick={create}>
      Create queue
    </Button>
  ) : undefined;
  useKeys('Annotate', can('judges:write') ? [{ keys: 'n', label: 'Create an annotation queue', run: create }] : []);
  return (
    <div className={styles.screen}>
      <div className={styles.tools}>
        <span className={styles.grow} role="status">
          {query.data === undefined ? '' : `${count(queues.length)} ${queues.length === 1 ? 'queue' : 'queues'}`}
        </span>
        {queues.length > 0 && button}
      </div>
      {query.data === undefined ? (
        <div className={styles.page}>
          {query.isError ? (
            <ErrorPanel error={query.error} what="the queues" onRetry={() => void query.refetch()} />
          ) : (
            <Skeleton rows={12} height={20} />
          )}
        </div>
      ) : queues.length === 0 ? (
        <div className={styles.page}>
          <EmptyState title="No annotation queues yet" action={button}>
            In a queue, people score traces one after the other by keys. Their answers become scores of the traces.
            {!can('judges:write') && ' Somebody with the permission judges:write can create one.'}
          </EmptyState>
        </div>
      ) : (
        <Queues queues={queues} hrefOf={hrefOf} onOpen={navigate} />
      )}
      {creates && (
        <QueueDialog
          onClose={() => {
            setCreates(false);
          }}
          onCreated={(queue_id) => {
            navigate(hrefOf(queue_id));
          }}
        />
      )}
    </div>
  );
}

interface QueuesProps {
  queues: readonly Queue[];
  hrefOf: (queue_id: string) => string;
  onOpen: (href: string) => void;
}

const NARROW_ROW = 52;

function Queues({ queues, hrefOf, onOpen }: QueuesProps): ReactElement {
  const narrow = useNarrow();
  const { cursor, setCursor } = useCursor(
    queues.map(({ queue_id }) => queue_id),
    'annotate',
  );
  const move = (step: number): void => {
    setCursor(Math.max(0, Math.min(queues.length - 1, cursor + step)));
  };
  useKeys('Queues', [
    {
      keys: ['j', 'ArrowDown'],
      label: 'Next queue',
      silent: true,
      run: () => {
        move(1);
      },
    },
    {
      keys: ['k', 'ArrowUp'],
      label: 'Previous queue',
      silent: true,
      run: () => {
        move(-1);
      },
    },
    {
      keys: 'Enter',
      label: 'Open the queue',
      silent: true,
      run: () => {
        const queue = queues[cursor];
        if (queue !== undefined) onOpen(hrefOf(queue.queue_id));
      },
    },
  ]);
  return (
    <DataTable
      label="Annotation queues"
      columns={columnsOf(hrefOf, narrow)}
      rows={queues}
      rowKey={({ queue_id }) => queue_id}
      cursor={cursor}
      onCursor={setCursor}
      onOpen={({ queue_id }, { newTab }) => {
        if (newTab) window.open(hrefOf(queue_id), '_blank', 'noopener');
        else onOpen(hrefOf(queue_id));
      }}
      {...(narrow ? { rowHeight: NARROW_ROW } : {})}
    />
  );
}

function columnsOf(hrefOf: QueuesProps['hrefOf'], narrow: boolean): Column<Queue>[] {
  const name = (queue: Queue): ReactElement => (
    <Link href={hrefOf(queue.queue_id)} className={styles.name} tabIndex={-1} title={queue.name}>
      {queue.name}
    </Link>
  );
  const done = ({ progress }: Queue): ReactElement => (
    <span className={styles.progress}>
      <progress max={Math.max(progress.total, 1)} value={progress.done} aria-label="Items done" />
      {count(progress.done)} of {count(progress.total)}
    </span>
  );
  if (narrow)
    return [
      {
        id: 'lines',
        head: 'Queue',
        width: 'minmax(0, 1fr)',
        cell: (queue) => (
          <span className={styles.lines}>
            {name(queue)}
            {done(queue)}
          </span>
        ),
      },
    ];
  return [
    { id: 'name', head: 'Name', width: 'minmax(160px, 2fr)', cell: name },
    { id: 'mode', head: 'Mode', width: '96px', cell: ({ mode }) => (mode === 'single' ? 'One trace' : 'Pairs') },
    {
      id: 'scores',
      head: 'Scores',
      width: 'minmax(120px, 1fr)',
      cell: ({ scores }) => scores.map((score) => score.name).join(', '),
    },
    { id: 'done', head: 'Done', width: '200px', cell: done },
    { id: 'left', head: 'Left', width: '72px', align: 'end', cell: ({ progress }) => count(progress.left) },
    {
      id: 'people',
      head: 'People an item',
      width: '112px',
      align: 'end',
      cell: ({ people_per_item }) => count(people_per_item),
    },
    {
      id: 'last',
      head: 'Last answer',
      width: '128px',
      cell: ({ last_answer_at }) => (last_answer_at === null ? NONE : <Moment at={last_answer_at} form="ago" />),
    },
  ];
}
