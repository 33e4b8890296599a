// Events whose delivery was given up: why, the last answer, the payload, and the action that sends one or
// all of an endpoint again.
import { useInfiniteQuery, useMutation, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { Link } from 'wouter';
import { send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { JsonViewer } from '../../trace/json/json_viewer.tsx';
import { count } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Button } from '../../ui/button.tsx';
import { EmptyState } from '../../ui/empty_state.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { Moment } from '../../ui/moment.tsx';
import { Skeleton } from '../../ui/skeleton.tsx';
import { toast } from '../../ui/toast.tsx';
import { auditLink } from '../audit/audit_link.ts';
import lists from '../sessions/sessions.module.css';
import { answerWords, REASON_WORDS } from './outcomes.ts';
import { type DeadLetter, lettersQuery, rereadWebhooks, webhookPath } from './webhook_data.ts';
import styles from './webhooks.module.css';

interface DeadLettersProps {
  /** Empty for those of all endpoints. */
  webhook_id: string;
  /** False while the endpoint is disabled: nothing can be sent to it. */
  enabled?: boolean;
  /** Returns the name of an endpoint; absent where all letters are of one. */
  nameOf?: (webhook_id: string) => string;
}

/** The list. */
export function DeadLetters({ webhook_id, enabled = true, nameOf }: DeadLettersProps): ReactElement {
  const { org_id, can } = useOrganization();
  const { data, error, refetch, hasNextPage, isFetchingNextPage, fetchNextPage } = useInfiniteQuery(
    lettersQuery(org_id, webhook_id),
  );
  const letters = data?.pages.flatMap((page) => page.data) ?? [];
  const total = data?.pages[0]?.meta.total ?? 0;
  if (error !== null && data === undefined)
    return <ErrorPanel error={error} what="the dead letters" onRetry={() => void refetch()} />;
  if (data === undefined) return <Skeleton rows={6} height={20} />;
  if (total === 0)
    return (
      <EmptyState title="No dead letters">
        An event becomes a dead letter when every attempt of 24 hours failed, when too many deliveries waited for its
        endpoint, or when it is too large to send. Dead letters are kept for 30 days.
      </EmptyState>
    );
  const mayReplay = can('integrations:write') && enabled;
  return (
    <>
      <div className={lists.actions}>
        <span className={lists.total} role="status">
          {count(total)} {total === 1 ? 'dead letter' : 'dead letters'}
        </span>
        {mayReplay && webhook_id !== '' && <ReplayAll key={webhook_id} webhook_id={webhook_id} total={total} />}
      </div>
      {!enabled && <p className={styles.quiet}>Enable the endpoint to replay its dead letters.</p>}
      <ul className={lists.cards} aria-label="Dead letters">
        {letters.map((letter) => (
          <Letter
            key={`${letter.webhook_id} ${letter.event_id}`}
            letter={letter}
            mayReplay={mayReplay}
            nameOf={nameOf}
          />
        ))}
      </ul>
      {hasNextPage && (
        <div className={lists.actions}>
          <Button busy={isFetchingNextPage} onClick={() => void fetchNextPage()}>
            Show more dead letters
          </Button>
        </div>
      )}
    </>
  );
}

interface LetterProps {
  letter: DeadLetter;
  mayReplay: boolean;
  nameOf: DeadLettersProps['nameOf'];
}

function Letter({ letter, mayReplay, nameOf }: LetterProps): ReactElement {
  const { org_id } = useOrganization();
  const { event_id, webhook_id, event, reason, attempts, died_at } = letter;
  const [isOpen, setOpen] = useState(false);
  const replay = useReplayOne(letter);
  return (
    <li className={styles.letter}>
      <div className={styles.line}>
        <span className={styles.grow}>
          <strong>{event}</strong> <code>{oneLine(event_id)}</code>
        </span>
        <Moment at={died_at} />
        {mayReplay && reason !== 'too_large' && (
          <Button
            icon="replay"
            busy={replay.isPending}
            aria-label={`Replay event ${event} ${event_id}`}
            onClick={() => {
              replay.mutate();
            }}
          >
            Replay event
          </Button>
        )}
      </div>
      <p className={styles.quiet}>
        {REASON_WORDS[reason]}. {oneLine(answerWords(letter))}, {count(attempts)}{' '}
        {attempts === 1 ? 'attempt' : 'attempts'}.{' '}
        {nameOf !== undefined && <Link href={webhookPath(org_id, webhook_id)}>{oneLine(nameOf(webhook_id))}</Link>}
      </p>
      {replay.error !== null && <ErrorPanel error={replay.error} what="the replay" />}
      <details
        onToggle={({ currentTarget }) => {
          setOpen(currentTarget.open);
        }}
      >
        <summary>Payload</summary>
        {isOpen && (
          <div className={styles.payload}>
            <JsonViewer given={{ value: letter.payload }} label={`Payload of ${event_id}`} />
          </div>
        )}
      </details>
    </li>
  );
}

function useReplayOne({ event_id, webhook_id }: DeadLetter) {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const [idempotencyKey] = useState(randomId);
  return useMutation({
    mutationFn: () =>
      send(org_id, 'post', '/orgs/{org_id}/webhooks/dead-letters/{event_id}/replay', {
        params: { path: { org_id, event_id } },
        body: { webhook_id },
        idempotencyKey,
      }),
    onSuccess: () => {
      toast({ text: 'The event is queued again.', link: auditLink(org_id, 'webhook.replay') });
      void rereadWebhooks(cache, org_id);
    },
  });
}

/** Replays all dead letters of an endpoint, a part of them with each request. */
function ReplayAll({ webhook_id, total }: { webhook_id: string; total: number }): ReactElement {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const [done, setDone] = useState(0);
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      for (let sum = 0; ;) {
        const { data } = await send(org_id, 'post', '/orgs/{org_id}/webhooks/{webhook_id}/dead-letters/replay', {
          params: { path: { org_id, webhook_id } },
          idempotencyKey: randomId(),
        });
        sum += data.replayed;
        setDone(sum);
        if (data.remaining === 0 || data.replayed === 0) return sum;
      }
    },
    onSuccess: (sum) => {
      toast({
        text: `${count(sum)} ${sum === 1 ? 'event is' : 'events are'} queued again.`,
        link: auditLink(org_id, 'webhook.replay'),
      });
    },
    onSettled: () => void rereadWebhooks(cache, org_id),
  });
  return (
    <>
      <Button
        icon="replay"
        busy={isPending}
        onClick={() => {
          mutate();
        }}
      >
        {isPending ? `Replayed ${count(done)} of ${count(total)}` : 'Replay all of this endpoint'}
      </Button>
      {error !== null && <ErrorPanel error={error} what="the replay" />}
    </>
  );
}
