// The test of an endpoint: sends the test event and waits for the result of its first attempt.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { get, send } from '../../client/api.ts';
import { randomId } from '../../client/random_id.ts';
import { useOrganization } from '../../client/session.ts';
import { duration } from '../../text/format.ts';
import { oneLine } from '../../trace/text/one_line.ts';
import { Chip } from '../../ui/chip.tsx';
import { ErrorPanel } from '../../ui/error_panel.tsx';
import { answerWords, OUTCOME_TONES, OUTCOME_WORDS } from './outcomes.ts';
import { type Attempt, rereadWebhooks, type Webhook } from './webhook_data.ts';
import styles from './webhooks.module.css';

/** An attempt is stored within seconds; it is asked for this often and this many times. */
const POLL_MS = 1000;
const POLLS_MAX = 60;

interface Test {
  busy: boolean;
  error: unknown;
  /** First attempt; null when none appeared in time, undefined before a test. */
  attempt: Attempt | null | undefined;
  run: () => void;
}

/** Returns the test of an endpoint. */
export function useTest({ webhook_id }: Webhook): Test {
  const { org_id } = useOrganization();
  const cache = useQueryClient();
  const { mutate, data, error, isPending } = useMutation({
    mutationFn: async (idempotencyKey: string) => {
      const { data: queued } = await send(org_id, 'post', '/orgs/{org_id}/webhooks/{webhook_id}/test', {
        params: { path: { org_id, webhook_id } },
        idempotencyKey,
      });
      return firstAttempt(org_id, webhook_id, queued.event_id);
    },
    onSuccess: () => void rereadWebhooks(cache, org_id),
  });
  return {
    busy: isPending,
    error,
    attempt: data,
    run: () => {
      if (!isPending) mutate(randomId());
    },
  };
}

async function firstAttempt(org_id: string, webhook_id: string, event_id: string): Promise<Attempt | null> {
  for (let polls = 0; polls < POLLS_MAX; polls += 1) {
    const { data } = await get(org_id, '/orgs/{org_id}/webhooks/{webhook_id}/deliveries', {
      path: { org_id, webhook_id },
      query: { event_id, limit: 1 },
    });
    const [attempt] = data;
    if (attempt !== undefined) return attempt;
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return null;
}

/** The answer of the receiver. */
export function TestResult({ test: { attempt, busy, error, run } }: { test: Test }): ReactElement {
  if (error !== null) return <ErrorPanel error={error} what="the test event" onRetry={run} />;
  return <div role="status">{(busy || attempt !== undefined) && <Result attempt={busy ? undefined : attempt} />}</div>;
}

function Result({ attempt }: Pick<Test, 'attempt'>): ReactElement {
  if (attempt === undefined) return <p className={styles.result}>The test event is being sent.</p>;
  if (attempt === null)
    return <p className={styles.result}>The test event is queued and was not attempted within a minute.</p>;
  return (
    <div className={styles.result}>
      <Chip tone={OUTCOME_TONES[attempt.outcome]}>{OUTCOME_WORDS[attempt.outcome]}</Chip>
      <span>
        {oneLine(answerWords(attempt))} after {duration(attempt.duration_ms)}
      </span>
    </div>
  );
}
