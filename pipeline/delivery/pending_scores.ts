// Attaches scores that came before their trace. It takes messages of the queue PENDING_SCORES, asks
// the store which of their traces have arrived, and publishes the scores of those to the queue
// SCORES. Guarantees: a score leaves the queue only after SCORES or DEAD_LETTERS has stored it, so
// a worker that dies loses none; one that is redelivered after it was published is recognized by
// its row. A score whose trace has not arrived within WAIT_MS_MAX becomes a dead letter. Bounds:
// the stream limits what each organization has waiting; a waiting score is asked for at intervals
// that grow with its age; HELD_MAX messages are held at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { queueAttachedScore } from '../../ops/exchange/score_queue.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type UserScore, userScoreCodec } from '../../schemas/codec.ts';
import { PENDING_SCORES_QUEUE as QUEUE, PENDING_SCORES_STREAM } from '../../schemas/streams.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readArrived, readLandedScores } from '../../sql/stores/pending_scores.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { type Delivery, QueueConsumer } from '../queues/queue_consumer.ts';

/** Time that a score waits for its trace. */
export const WAIT_MS_MAX = 24 * 3_600_000;
const HELD_MAX = 500;
/** Maximum bytes held: 500 messages of 64 KiB, the largest that the stream accepts. */
const HELD_BYTES_MAX = 32 * 1024 * 1024;
/** Pause between two questions to the store. */
const GATHER_MS = 250;
const RETRY = { firstMs: 500, maxMs: 30_000 };
const ACK_WAIT_MS = 20_000;
/** A score is asked for again after this share of the time that it has waited, between the bounds below. */
const WAITED_SHARE = 0.2;
const AGAIN_MS_MIN = 400;
const AGAIN_MS_MAX = 60_000;

export interface PendingScoresOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: (queue: string, result: 'done' | 'retried' | 'dead', count: number) => void;
}

/** Returns when a score that has waited this long is asked for again, milliseconds from now. */
export const againMs = (waitedMs: number): number =>
  Math.round(Math.min(AGAIN_MS_MAX, Math.max(AGAIN_MS_MIN, waitedMs * WAITED_SHARE)));

export class PendingScores {
  readonly #options: PendingScoresOptions;
  readonly #consumer: QueueConsumer<UserScore>;
  #waiting: Delivery<UserScore>[] = [];
  #working: Promise<void> = Promise.resolve();

  constructor(options: PendingScoresOptions) {
    this.#options = options;
    const { log, logger, now, observe } = options;
    this.#consumer = new QueueConsumer<UserScore>({
      log,
      logger,
      queue: QUEUE,
      stream: PENDING_SCORES_STREAM,
      codec: userScoreCodec,
      deliver: (delivery) => {
        this.#waiting.push(delivery);
        return undefined;
      },
      deadLetter: createDeadLetterStore(log, now),
      observe: (result, count) => {
        observe(QUEUE, result, count);
      },
      messagesMax: HELD_MAX,
      bytesMax: HELD_BYTES_MAX,
      // Most messages wait for a retry; the streams bound how many there are.
      ackPendingMax: -1,
      ackWaitMs: ACK_WAIT_MS,
      retry: RETRY,
      confirmAcks: true,
      now,
    });
  }

  start(): void {
    this.#consumer.start();
    this.#working = this.#work();
  }

  async stop(): Promise<void> {
    const stopped = this.#consumer.stop();
    for (const delivery of this.#waiting.splice(0)) this.#consumer.retry(delivery, 0);
    await stopped;
    await this.#working;
  }

  async #work(): Promise<void> {
    const { stopping } = this.#consumer;
    while (!stopping.aborted) {
      await sleep(GATHER_MS, undefined, { signal: stopping }).catch(() => undefined);
      const batch = this.#waiting.splice(0);
      if (batch.length > 0)
        await this.#attach(batch).catch(async (error: unknown) => {
          await this.#consumer.fail(batch, error);
        });
    }
  }

  async #attach(batch: readonly Delivery<UserScore>[]): Promise<void> {
    const { log, clickhouse, now, observe } = this.#options;
    const scores = batch.map(({ value }) => value);
    const org_ids = distinct(scores.map(({ org_id }) => org_id));
    const trace_ids = distinct(scores.map(({ trace_id }) => trace_id));
    const arrived = new Map(
      (await readArrived(clickhouse, { org_ids, trace_ids })).map((row) => [keyOf(row), row.from_ms]),
    );
    const found = batch.filter(({ value }) => arrived.has(keyOf(value)));
    const landed = await this.#landed(found);
    for (const delivery of batch) {
      const { value } = delivery;
      const started = arrived.get(keyOf(value));
      // The time of a score may be long past when it comes.
      const waited = now() - Math.max(delivery.queued_at, value.created_at);
      if (started !== undefined) {
        if (!landed.has(landedKey(value.score_id, value.created_at)))
          await queueAttachedScore(log, { ...value, trace_started_at: started });
        await this.#consumer.acknowledge(delivery);
        observe(QUEUE, 'done', 1);
      } else if (waited > WAIT_MS_MAX)
        await this.#consumer.deadLetter(delivery, 'expired', new Error('its trace did not arrive within 24 hours'));
      else this.#consumer.retry(delivery, againMs(waited));
    }
  }

  /** Returns which redelivered scores have landed: a worker that died may have published them. */
  async #landed(found: readonly Delivery<UserScore>[]): Promise<ReadonlySet<string>> {
    const again = found.filter(({ attempt }) => attempt > 0).map(({ value }) => value);
    if (again.length === 0) return new Set();
    const rows = await readLandedScores(this.#options.clickhouse, {
      org_ids: distinct(again.map(({ org_id }) => org_id)),
      trace_ids: distinct(again.map(({ trace_id }) => trace_id)),
      score_ids: distinct(again.map(({ score_id }) => score_id)),
    });
    return new Set(rows.map(({ score_id, created_ms }) => landedKey(score_id, created_ms)));
  }
}

const distinct = (texts: readonly string[]): string[] => [...new Set(texts)];
/** Organization ids contain no line breaks. */
const keyOf = ({ org_id, trace_id }: { org_id: string; trace_id: string }): string => `${org_id}\n${trace_id}`;
const landedKey = (score_id: string, created_at: number): string => `${score_id} ${created_at}`;
