// Labelling: left the conversation of a trace, or two side by side, right the scores with their keys.
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { queryClient, readAhead } from '../../client/query_client.ts';
import { useOrganization } from '../../client/session.ts';
import { useKeys } from '../../shell/keys.ts';
import { usePageRequest } from '../../shell/page_request.ts';
import { usePageTitle } from '../../shell/page_title.ts';
import { useRouteParams } from '../../shell/route_params.ts';
import type { Preload } from '../../shell/routes.tsx';
import { count } from '../../text/format.ts';
import { ButtonLink } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { codec, text } from '../../url/search_params.ts';
import { useSearchState } from '../../url/use_search_state.ts';
import { conversationQuery, outlineQuery } from '../trace/trace_api.ts';
import { type Queue, queueQuery } from './annotate_api.ts';
import { LabelForm } from './label_form.tsx';
import { LabelTrace } from './label_trace.tsx';
import { activeScore, type Choice, choicesOf, missingScore, type ScoreSpec } from './score_keys.ts';
import { type Labels, useLabels } from './use_labels.ts';
import styles from './annotate.module.css';

const url = codec({ item: text() });

/** Starts the request of the page. */
export const preload: Preload = ({ org_id, params: { queue_id = '' } }) => {
  readAhead(queryClient.query(queueQuery(org_id, queue_id)));
};

/** The page. */
export default function LabelScreen(): ReactElement {
  const { org_id } = useOrganization();
  const queue_id = useRouteParams()('queue_id');
  const [{ item }] = useSearchState(url);
  const queue = useQuery(queueQuery(org_id, queue_id));
  usePageRequest(`/v1/annotation-queues/${encodeURIComponent(queue_id)}/progress`);
  usePageTitle(queue.data === undefined ? null : `Label ${queue.data.data.name}`);
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
  return <Label key={`${queue_id} ${item}`} queue={queue.data.data} wanted={item === '' ? null : item} />;
}

function Label({ queue, wanted }: { queue: Queue; wanted: string | null }): ReactElement {
  const { org_id } = useOrganization();
  const labels = useLabels(org_id, queue.queue_id, wanted);
  const comment = useRef<HTMLTextAreaElement>(null);
  const [item] = labels.items;
  const id = item?.item_id ?? '';
  const [focused, setFocused] = useState<{ item_id: string; name: string } | null>(null);
  const reached = focused?.item_id === id ? focused.name : null;
  const active = activeScore(queue.scores, labels.draft.values, reached);
  useLoadAhead(labels);
  const choose = (name: string, value: Choice['value']): void => {
    setFocused(null);
    labels.setDraft({ ...labels.draft, values: { ...labels.draft.values, [name]: value } });
  };
  const save = (): void => {
    const missing = missingScore(queue.scores, labels.draft.values);
    if (missing === null) labels.save(false);
    else toast({ text: `Choose a value for ${missing} first, or skip.` });
  };
  useLabelKeys(labels, { active, choose, save, comment });
  const back = `/o/${encodeURIComponent(org_id)}/annotate/${encodeURIComponent(queue.queue_id)}`;
  if (item === undefined)
    return (
      <div className={styles.page}>
        <NoItem labels={labels} back={back} />
      </div>
    );
  return (
    <div className={styles.label}>
      <div className={styles.traces}>
        {item.trace_ids.map((trace_id, side) => (
          <LabelTrace
            key={trace_id}
            traceId={trace_id}
            title={item.trace_ids.length === 1 ? null : side === 0 ? 'Left' : 'Right'}
          />
        ))}
      </div>
      <LabelForm
        key={item.item_id}
        queue={queue}
        labels={labels}
        comment={comment}
        onChoose={choose}
        active={active?.name ?? null}
        onReach={(name) => {
          setFocused({ item_id: id, name });
        }}
        onSave={save}
      />
    </div>
  );
}

function NoItem({ labels, back }: { labels: Labels; back: string }): ReactElement {
  const { loading, error, counts, retry } = labels;
  if (loading) return <Skeleton rows={12} height={20} />;
  if (error !== null) return <ErrorPanel error={error} what="the next item" onRetry={retry} />;
  const isDone = counts !== null && counts.total > 0 && counts.left === 0;
  return (
    <EmptyState
      title={isDone ? 'The queue is done' : 'Nothing is left for you'}
      action={
        <ButtonLink href={back} look="primary">
          See what was said
        </ButtonLink>
      }
    >
      {isDone
        ? `Items with all their answers: ${count(counts.total)}.`
        : counts?.total === 0
          ? 'The queue has no items yet.'
          : `${count(counts?.left ?? 0)} items wait for other people, or you have skipped them.`}
    </EmptyState>
  );
}

/** Loads the traces of the items after the one on the screen. */
function useLoadAhead({ items }: Labels): void {
  const { org_id } = useOrganization();
  const queries = useQueryClient();
  const ahead = items
    .slice(1)
    .flatMap(({ trace_ids }) => trace_ids)
    .join('\n');
  useEffect(() => {
    for (const trace_id of ahead.split('\n').filter((one) => one !== '')) {
      // The item shows the error when it is reached.
      queries.query(outlineQuery(org_id, trace_id)).catch(() => undefined);
      queries.infiniteQuery(conversationQuery(org_id, trace_id)).catch(() => undefined);
    }
  }, [queries, org_id, ahead]);
}

interface KeyContext {
  /** The score that digits act on. */
  active: ScoreSpec | undefined;
  choose: (name: string, value: Choice['value']) => void;
  save: () => void;
  comment: { current: HTMLTextAreaElement | null };
}

function useLabelKeys(labels: Labels, { active, choose, save, comment }: KeyContext): void {
  const { org_id } = useOrganization();
  const digit = (key: string): void => {
    if (active === undefined || labels.items.length === 0) return;
    const choices = choicesOf(active);
    if (choices === null) document.getElementById(`score-${active.name}`)?.focus();
    const chosen = choices?.find((one) => one.key === key);
    if (chosen !== undefined) choose(active.name, chosen.value);
  };
  const digits = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'].map((key) => ({
    keys: key,
    label: key === '0' ? 'Choose equal, or 0' : `Choose value ${key}`,
    silent: true,
    run: () => {
      digit(key);
    },
  }));
  const isWhole = labels.items.length > 0;
  useKeys('Annotate', [
    ...digits,
    {
      keys: ['Enter', 'Mod+Enter'],
      label: 'Save and show the next item',
      run: () => {
        if (isWhole) save();
      },
    },
    {
      keys: 's',
      label: 'Skip the item',
      run: () => {
        labels.save(true);
      },
    },
    { keys: 'Backspace', label: 'Go back to the item before', run: labels.back },
    { keys: 'u', label: 'Undo the last answer', run: labels.undo },
    { keys: 'w', label: 'Write a comment', run: () => comment.current?.focus() },
    {
      keys: 'o',
      label: 'Open the full trace',
      run: () => {
        const trace_id = labels.items[0]?.trace_ids[0];
        if (trace_id !== undefined)
          window.open(`/o/${encodeURIComponent(org_id)}/traces/${encodeURIComponent(trace_id)}`, '_blank', 'noopener');
      },
    },
    {
      keys: 'Escape',
      label: 'Leave the comment',
      silent: true,
      run: () => {
        if (document.activeElement instanceof HTMLElement) document.activeElement.blur();
      },
    },
  ]);
}
