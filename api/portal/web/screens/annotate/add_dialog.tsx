// The dialog that adds traces to an annotation queue: chosen ones, or a share of what a list shows.
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { RequestError } from '../../client/error.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { count } from '../../text/format.ts';
import { Button, ButtonLink } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Field, Input, Select } from '../../ui/field.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { addToQueue, type Queue, queuesQuery, rereadQueues } from './annotate_api.ts';
import styles from './annotate.module.css';

interface AddDialogProps {
  /** Chosen traces; absent: those of the query. */
  trace_ids?: readonly string[];
  /** Query string of the list. */
  query?: string;
  /** The queue, where the dialog belongs to one. */
  queue_id?: string;
  onClose: () => void;
}

/** The dialog. */
export default function AddDialog(props: AddDialogProps): ReactElement {
  const { org_id } = useOrganization();
  const queues = useQuery(queuesQuery(org_id));
  const known = queues.data?.data;
  if (known !== undefined && known.length > 0) return <AddForm {...props} queues={known} />;
  return (
    <Dialog title="Add to annotation queue" onClose={props.onClose}>
      {known !== undefined ? (
        <EmptyState
          title="No annotation queues yet"
          action={
            <ButtonLink href={`/o/${encodeURIComponent(org_id)}/annotate`} look="primary">
              Go to the queues
            </ButtonLink>
          }
        >
          Create a queue first. It says what people are asked about its traces.
        </EmptyState>
      ) : queues.isError ? (
        <ErrorPanel error={queues.error} what="the queues" onRetry={() => void queues.refetch()} />
      ) : (
        <Skeleton rows={3} height={20} />
      )}
    </Dialog>
  );
}

const LAST_QUEUE = 'millrace.queue';

/** Returns the queue that was used last in this browser, or else the first one. */
function lastQueue(queues: readonly Queue[], org_id: string): string {
  const last = localStorage.getItem(`${LAST_QUEUE}.${org_id}`);
  return (queues.find(({ queue_id }) => queue_id === last) ?? queues[0])?.queue_id ?? '';
}

function useAdd({ trace_ids, onClose }: AddDialogProps) {
  const { org_id } = useOrganization();
  const [key, setKey] = useState(randomId);
  return useMutation({
    mutationFn: ({
      queue_id,
      query,
      share,
      limit,
    }: {
      queue_id: string;
      query: string;
      share: string;
      limit: string;
    }) =>
      addToQueue(
        org_id,
        queue_id,
        trace_ids === undefined
          ? { query, share: Number(share) / 100, limit: Number(limit) }
          : { trace_ids: [...trace_ids] },
        key,
      ),
    onSuccess: ({ data: { added, already, missing, unpaired } }, { queue_id }) => {
      localStorage.setItem(`${LAST_QUEUE}.${org_id}`, queue_id);
      const rest = [
        [already, 'were there before'],
        [missing, 'do not exist'],
        [unpaired, 'have no pair'],
      ] as const;
      const more = rest.filter(([n]) => n > 0).map(([n, words]) => `${count(n)} ${words}`);
      toast({
        text: `Added ${count(added)} ${added === 1 ? 'item' : 'items'}${more.length === 0 ? '.' : `; ${more.join(', ')}.`}`,
        link: {
          label: 'Open queue',
          href: `/o/${encodeURIComponent(org_id)}/annotate/${encodeURIComponent(queue_id)}`,
        },
      });
      rereadQueues(org_id);
      onClose();
    },
    onError: () => {
      setKey(randomId());
    },
  });
}

function AddForm(props: AddDialogProps & { queues: readonly Queue[] }): ReactElement {
  const { trace_ids, onClose, queues } = props;
  const { org_id } = useOrganization();
  const add = useAdd(props);
  const [draft, setDraft] = useState({
    queue_id: props.queue_id ?? lastQueue(queues, org_id),
    query: props.query ?? '',
    share: '100',
    limit: '200',
  });
  const bound: Bound = (name) => ({
    value: draft[name],
    onChange: (event: { target: { value: string } }) => {
      setDraft({ ...draft, [name]: event.target.value });
    },
  });
  const what =
    trace_ids === undefined ? 'traces' : `${count(trace_ids.length)} ${trace_ids.length === 1 ? 'trace' : 'traces'}`;
  return (
    <Dialog
      title={`Add ${what} to a queue`}
      onClose={onClose}
      onSubmit={() => {
        if (!add.isPending) add.mutate(draft);
      }}
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button look="primary" type="submit" busy={add.isPending}>
            Add traces
          </Button>
        </>
      }
    >
      <div className={styles.fields}>
        {props.queue_id === undefined && (
          <Field label="Queue">
            {(control) => (
              <Select
                {...control}
                value={draft.queue_id}
                autoFocus
                onChange={(event) => {
                  setDraft({ ...draft, queue_id: event.currentTarget.value });
                }}
              >
                {queues.map(({ queue_id, name, progress }) => (
                  <option key={queue_id} value={queue_id}>
                    {name} ({count(progress.left)} left)
                  </option>
                ))}
              </Select>
            )}
          </Field>
        )}
        {trace_ids === undefined && <QueryFields bound={bound} />}
        {add.error !== null && (
          <p role="alert" className={styles.error}>
            {add.error instanceof RequestError ? add.error.detail : 'The traces could not be added.'}
          </p>
        )}
      </div>
    </Dialog>
  );
}

type Bound = (name: 'query' | 'share' | 'limit') => {
  value: string;
  onChange: (event: { target: { value: string } }) => void;
};

function QueryFields({ bound }: { bound: Bound }): ReactElement {
  return (
    <>
      <Field label="Query" hint="Filters as in the address of the list: outcome=error&agent_id=planner. Empty: all">
        {(control) => <Input {...control} maxLength={4096} {...bound('query')} />}
      </Field>
      <Field label="Share in percent" hint="100 takes each trace of the list, newest first">
        {(control) => <Input {...control} type="number" min={0.1} max={100} step="any" required {...bound('share')} />}
      </Field>
      <Field label="Traces at most">
        {(control) => <Input {...control} type="number" min={1} max={1000} required {...bound('limit')} />}
      </Field>
    </>
  );
}
