// One annotation queue: how far it is, what was said, how far people agree, and its items.
import { keepPreviousData, useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { RequestError } from '../../client/error.ts';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Select } from '../../ui/field.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { codec, optionalChoice } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { ToDatasetButton } from '../datasets/to_dataset_button.tsx';
import AddDialog from './add_dialog.tsx';
import { EditQueueDialog } from './edit_queue_dialog.tsx';
import {
  type AnsweredItem,
  deleteQueue,
  itemsQuery,
  progressQuery,
  type Queue,
  queueQuery,
  rereadQueues,
} from './annotate_api.ts';
import { People, ProgressSums, Said } from './progress_parts.tsx';
import styles from './annotate.module.css';

const STATES = ['disagreed', 'done', 'open', 'skipped'] as const;
const WORDS = {
  disagreed: 'Disagreements',
  done: 'Done',
  open: 'Open',
  skipped: 'Skipped',
} as const;
const url = codec({ state: optionalChoice(STATES) });
const ITEMS = 100;

/** Starts the requests of the page. */
export const preload: Preload = ({ org_id, params: { queue_id = '' } }) => {
  readAhead(queryClient.query(queueQuery(org_id, queue_id)));
  readAhead(queryClient.query(progressQuery(org_id, queue_id)));
};

/** The page. */
export default function QueueScreen(): ReactElement {
  const { org_id } = useOrganization();
  const queue_id = useRouteParams()('queue_id');
  const queue = useQuery(queueQuery(org_id, queue_id));
  const progress = useQuery(progressQuery(org_id, queue_id));
  usePageTitle(queue.data?.data.name ?? null);
  usePageRequest(`/v1/annotation-queues/${encodeURIComponent(queue_id)}/progress`);
  if (queue.data === undefined)
    return (
      <div className={styles.page}>
        {queue.isError ? (
          <ErrorPanel error={queue.error} what="the queue" onRetry={() => void queue.refetch()} />
        ) : (
          <Skeleton rows={12} height={20} />
        )}
      </div>
    );
  const { data } = queue.data;
  return (
    <div className={styles.page}>
      <Actions queue={data} />
      {data.instructions !== '' && (
        <p className={styles.said} dir="auto">
          {data.instructions}
        </p>
      )}
      {progress.data !== undefined ? (
        <>
          <ProgressSums progress={progress.data.data} />
          <Said progress={progress.data.data} queue={data} />
          <People progress={progress.data.data} />
        </>
      ) : progress.isError ? (
        <ErrorPanel error={progress.error} what="the progress" onRetry={() => void progress.refetch()} />
      ) : (
        <Skeleton rows={6} height={20} />
      )}
      <Items queue={data} />
    </div>
  );
}

/**
 * Binds the keys of the actions that are permitted.
 * @param label address of the page that labels; null when nothing can be labelled
 */
function useQueueKeys(label: string | null, open: (layer: 'add' | 'edit') => void): void {
  const { can } = useOrganization();
  const [, navigate] = useLocation();
  useKeys('Queue', [
    ...(label !== null
      ? [
          {
            keys: 'l',
            label: 'Label the next item',
            run: () => {
              navigate(label);
            },
          },
        ]
      : []),
    ...(can('judges:write')
      ? [
          {
            keys: 'a',
            label: 'Add traces to the queue',
            run: () => {
              open('add');
            },
          },
          {
            keys: 'e',
            label: 'Edit the queue',
            run: () => {
              open('edit');
            },
          },
        ]
      : []),
  ]);
}

function Actions({ queue }: { queue: Queue }): ReactElement {
  const { org_id, can } = useOrganization();
  const [layer, setLayer] = useState<'add' | 'edit' | 'delete' | null>(null);
  const label = `/o/${encodeURIComponent(org_id)}/annotate/${encodeURIComponent(queue.queue_id)}/label`;
  const mayLabel = can('ingest:write') && queue.progress.left > 0;
  const close = (): void => {
    setLayer(null);
  };
  useQueueKeys(mayLabel ? label : null, setLayer);
  return (
    <div className={styles.actions}>
      {mayLabel && (
        <ButtonLink href={label} look="primary" keys="l">
          Label
        </ButtonLink>
      )}
      {can('judges:write') && (
        <>
          <Button
            icon="plus"
            keys="a"
            onClick={() => {
              setLayer('add');
            }}
          >
            Add traces
          </Button>
          <Button
            keys="e"
            onClick={() => {
              setLayer('edit');
            }}
          >
            Edit queue
          </Button>
          <Button
            icon="trash"
            look="quiet"
            onClick={() => {
              setLayer('delete');
            }}
          >
            Delete queue
          </Button>
        </>
      )}
      {layer === 'add' && <AddDialog queue_id={queue.queue_id} onClose={close} />}
      {layer === 'edit' && <EditQueueDialog queue={queue} onClose={close} />}
      {layer === 'delete' && <DeleteDialog queue={queue} onClose={close} />}
    </div>
  );
}

function DeleteDialog({ queue, onClose }: { queue: Queue; onClose: () => void }): ReactElement {
  const { org_id } = useOrganization();
  const [, navigate] = useLocation();
  const remove = useMutation({
    mutationFn: () => deleteQueue(org_id, queue.queue_id),
    onSuccess: () => {
      toast({ text: `Deleted the queue ${queue.name}.` });
      navigate(`/o/${encodeURIComponent(org_id)}/annotate`);
      rereadQueues(org_id, queue.queue_id);
    },
  });
  return (
    <Dialog
      title={`Delete the queue ${queue.name}`}
      onClose={onClose}
      onSubmit={() => {
        if (!remove.isPending) remove.mutate();
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="danger" type="submit" busy={remove.isPending}>
            Delete queue
          </Button>
        </>
      }
    >
      <p>
        The queue and its {count(queue.progress.total)} items are deleted. The scores that were given stay with their
        traces.
      </p>
      {remove.error !== null && (
        <p role="alert" className={styles.error}>
          {remove.error instanceof RequestError ? remove.error.detail : 'The queue could not be deleted.'}
        </p>
      )}
    </Dialog>
  );
}

function Items({ queue }: { queue: Queue }): ReactElement {
  const { org_id } = useOrganization();
  const [{ state: chosen }, change] = useSearchState(url);
  const state = chosen ?? (queue.progress.done > 0 ? 'done' : 'open');
  const query = useQuery({
    ...itemsQuery(org_id, queue.queue_id, state, ITEMS),
    placeholderData: keepPreviousData,
  });
  const items = query.data?.data;
  const total = query.data?.meta.total ?? 0;
  return (
    <section className={styles.section} aria-label="Items">
      <div className={styles.actions}>
        <h2 className={styles.grow}>Items</h2>
        {items !== undefined && items.length > 0 && (
          <ToDatasetButton targets={() => ({ trace_ids: items.flatMap(({ trace_ids }) => trace_ids) })} />
        )}
        <Select
          className={styles.state}
          aria-label="State of the items"
          value={state}
          onChange={(event) => {
            change({ state: event.currentTarget.value as (typeof STATES)[number] });
          }}
        >
          {STATES.map((one) => (
            <option key={one} value={one}>
              {WORDS[one]}
            </option>
          ))}
        </Select>
      </div>
      {items === undefined ? (
        query.isError ? (
          <ErrorPanel error={query.error} what="the items" onRetry={() => void query.refetch()} />
        ) : (
          <Skeleton rows={6} height={20} />
        )
      ) : items.length === 0 ? (
        <EmptyState title={queue.progress.total === 0 ? 'No items yet' : `No items under “${WORDS[state]}”`}>
          {queue.progress.total === 0
            ? 'The queue is empty. Add traces by a query of the list, or select traces in the list and press a.'
            : 'Choose another state above.'}
        </EmptyState>
      ) : (
        <>
          <ul className={styles.list}>
            {items.map((item) => (
              <ItemLine key={item.item_id} item={item} />
            ))}
          </ul>
          {total > items.length && (
            <p className={styles.quiet}>
              The first {count(items.length)} of {count(total)} items. The API lists all of them.
            </p>
          )}
        </>
      )}
    </section>
  );
}

function ItemLine({ item }: { item: AnsweredItem }): ReactElement {
  const { org_id } = useOrganization();
  return (
    <li className={styles.item}>
      <span className={styles.ids}>
        {item.trace_ids.map((trace_id) => (
          <Link key={trace_id} href={`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}`}>
            <code>{trace_id}</code>
          </Link>
        ))}
      </span>
      {item.answers.map(({ by, said, scores, comment }) => (
        <span key={`${by.type} ${by.id}`} className={styles.answer}>
          <bdi className={styles.quiet}>{by.id}</bdi>
          {said === 'skip'
            ? 'skipped'
            : Object.entries(scores)
                .map(([name, value]) => `${name}: ${pairWords(item, value)}`)
                .join(', ')}
          {comment !== null && <q dir="auto">{comment}</q>}
        </span>
      ))}
      {item.leased_by.length > 0 && (
        <span className={styles.quiet}>{item.leased_by.map(({ id }) => id).join(', ')} has it now</span>
      )}
    </li>
  );
}

const PAIR_WORDS: Readonly<Record<string, string>> = { win: 'first', loss: 'second', tie: 'equal' };

/** Returns a value in words; of a pair the answers say which trace of the line is better. */
function pairWords({ trace_ids }: AnsweredItem, value: string | number | boolean | null): string {
  return trace_ids.length === 2 ? (PAIR_WORDS[String(value)] ?? String(value)) : String(value);
}
