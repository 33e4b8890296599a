// The list of annotation queues: how far each is, and the way to a new one.
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { ListTable } from '../../lists/list_table.tsx';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count, NONE } from '../../text/format.ts';
import { Button } from '../../ui/button.tsx';
import type { Column } from '../../ui/data_table.tsx';
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

const queueIdOf = ({ queue_id }: Queue): string => queue_id;

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
        <ListTable
          label="Annotation queues"
          noun="queue"
          address="annotate"
          rows={queues}
          rowKey={queueIdOf}
          columns={(narrow) => columnsOf(hrefOf, narrow)}
          hrefOf={({ queue_id }) => hrefOf(queue_id)}
        />
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

function columnsOf(hrefOf: (queue_id: string) => string, narrow: boolean): Column<Queue>[] {
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
    { id: 'mode', head: 'Mode', width: '88px', cell: ({ mode }) => (mode === 'single' ? 'One trace' : 'Pairs') },
    {
      id: 'scores',
      head: 'Scores',
      width: 'minmax(104px, 1fr)',
      cell: ({ scores }) => scores.map((score) => score.name).join(', '),
    },
    { id: 'done', head: 'Done', width: '160px', cell: done },
    { id: 'left', head: 'Left', width: '72px', align: 'end', cell: ({ progress }) => count(progress.left) },
    {
      id: 'people',
      head: 'People per item',
      width: '112px',
      align: 'end',
      cell: ({ people_per_item }) => count(people_per_item),
    },
    {
      id: 'last',
      head: 'Last answer',
      width: '112px',
      cell: ({ last_answer_at }) => (last_answer_at === null ? NONE : <Moment at={last_answer_at} form="ago" />),
    },
  ];
}
