// Judges live traces by LLM judges: it consumes the queue judging.live, which all workers share. A
// task names one trace and one judge. Guarantees: a task leaves the queue when its score is stored,
// or when there is nothing to judge. When a worker dies, another one takes its task over, and looks
// for the stored score and the recorded answer before it calls the upstream again. A slow or
// unreachable upstream delays only its own tasks, which are retried for a day and then end as
// errors. A task of one organization delays those of another by one turn. Two effects may repeat: a
// call (see llm_recorded_calls.ts), and a breach event, under the same id. Accepted tasks are
// bounded in all and for each organization; a task without room is redelivered later.
import { UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { JUDGING_MESSAGE_BYTES_MAX, JUDGING_STREAM, judgingSubject } from '../../schemas/streams.ts';
import { type JudgingTask, judgingTaskCodec } from '../../schemas/codec.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import { type ClickHouse, StoreUnavailable } from '../../sql/client/client.ts';
import { retryDelayMs, type RetryBounds } from '../queues/backoff.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { type Delivery, QueueConsumer } from '../queues/queue_consumer.ts';
import type { Cooldown } from './live_cooldown.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import type { JudgeVersions } from './llm_judge_versions.ts';
import { type JudgementOutcome, LiveJudgement, NotYet } from './live_judgement.ts';
import type { LlmJudges } from './llm_judges.ts';

const QUEUE = 'judging_live';
/** Messages requested at a time. */
const FETCH_MAX = 500;
/**
 * Maximum number of accepted tasks, those that wait for their turn included; some hundred bytes
 * each.
 */
const ACCEPTED_MAX = 4000;
/** Maximum number of accepted tasks of one organization. */
const ACCEPTED_ORG_MAX = 1000;
/**
 * Tasks without room that wait for the next batch of negative acknowledgements, a quarter of a
 * second.
 */
const PUT_OFF_MAX = 4000;
const HELD_BYTES_MAX = 2 * FETCH_MAX * JUDGING_MESSAGE_BYTES_MAX;
/** Maximum number of judgements under way, of all organizations and of one. */
const RUNNING = { totalMax: 16, orgMax: 4 };
/** First delay of a task without room, up to twice of it; it doubles with each redelivery. */
const NO_ROOM_MS = 10_000;
/**
 * Maximum number of doublings: the longest delay is 64 to 128 times NO_ROOM_MS, 11 to 21 minutes.
 */
const NO_ROOM_DOUBLINGS_MAX = 6;
const NO_UPSTREAM_LOG_MS = 60_000;

/** How a task ended. */
export type LiveOutcome = JudgementOutcome | 'cooldown' | 'disabled' | 'no_judge' | 'no_upstream' | 'dead';

export interface LiveTimings {
  /** Time after which the queue redelivers the tasks of a worker that died, milliseconds. */
  ackWaitMs: number;
  retry: RetryBounds;
  /** Age at which a task that fails ends, milliseconds. */
  giveUpMs: number;
  /** Age of a task after which a trace that is still missing counts as deleted, milliseconds. */
  missingMs: number;
  /**
   * Time that judgements under way get to end on shutdown; then they are broken off and given back.
   */
  stopMs: number;
}

export const LIVE_TIMINGS: LiveTimings = {
  ackWaitMs: 60_000,
  retry: { firstMs: 2000, maxMs: 300_000 },
  giveUpMs: 24 * 3_600_000,
  missingMs: 600_000,
  stopMs: 5000,
};

export interface LiveJudgingOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  book: Pick<JudgeVersions, 'newest' | 'version'>;
  cooldown: Pick<Cooldown, 'admits'>;
  /** null without an upstream: nothing is judged. */
  judges: Pick<LlmJudges, 'judge' | 'isUsedUp'> | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Receives how each task ended, and each retry. */
  observe: (outcome: LiveOutcome | 'retried') => void;
  onPublished: (event: string) => void;
  timings?: LiveTimings;
}

type Task = Delivery<JudgingTask>;

export class LiveJudging {
  readonly #options: LiveJudgingOptions;
  readonly #timings: LiveTimings;
  readonly #consumer: QueueConsumer<JudgingTask>;
  readonly #slots = new FairSlots(RUNNING);
  /** Accepted tasks, in all and by organization. */
  #accepted = 0;
  readonly #acceptedOf = new Map<string, number>();
  readonly #judgement: LiveJudgement;
  #saidNoUpstream = -Infinity;

  constructor(options: LiveJudgingOptions) {
    this.#options = options;
    this.#timings = options.timings ?? LIVE_TIMINGS;
    const { log, logger, now, observe } = options;
    this.#judgement = new LiveJudgement({ ...options, missingMs: this.#timings.missingMs });
    this.#consumer = new QueueConsumer({
      log,
      logger,
      queue: QUEUE,
      stream: JUDGING_STREAM,
      subject: judgingSubject('live'),
      codec: judgingTaskCodec,
      deliver: (task) => this.#take(task),
      deadLetter: createDeadLetterStore(log, now),
      observe: (result, count) => {
        for (let n = 0; n < count; n += 1) observe(result);
      },
      messagesMax: ACCEPTED_MAX + PUT_OFF_MAX,
      bytesMax: HELD_BYTES_MAX,
      fetchMax: FETCH_MAX,
      // Tasks that wait for a retry count as pending: with a bound, those of one organization would
      // keep out all others.
      ackPendingMax: -1,
      ackWaitMs: this.#timings.ackWaitMs,
      retry: this.#timings.retry,
      // A task whose acknowledgement is lost is redelivered, and its stored score is found.
      confirmAcks: false,
      drainMs: this.#timings.stopMs,
      now,
    });
  }

  start(): void {
    this.#consumer.start();
  }

  /**
   * Ends the judgements under way within `stopMs`, and gives the tasks that wait back to the queue.
   */
  async stop(): Promise<void> {
    await this.#consumer.stop();
  }

  /**
   * Examines a task as it arrives: most traces of a busy agent are within the cooldown of its
   * judges and end here.
   */
  async #take(delivery: Task): Promise<void> {
    const { judges } = this.#options;
    const { org_id } = delivery.value;
    if (judges === null) {
      this.#sayNoUpstream();
      await this.#done(delivery, 'no_upstream');
      return;
    }
    if (judges.isUsedUp(org_id)) {
      await this.#done(delivery, 'quota');
      return;
    }
    if (this.#accepted >= ACCEPTED_MAX || (this.#acceptedOf.get(org_id) ?? 0) >= ACCEPTED_ORG_MAX) {
      // The delay doubles: otherwise redelivering a million tasks of a model that is unavailable
      // would be the worker's main work.
      const times = 2 ** Math.min(delivery.attempt, NO_ROOM_DOUBLINGS_MAX);
      this.#consumer.retry(delivery, NO_ROOM_MS * times * (1 + Math.random()));
      return;
    }
    this.#count(org_id, 1);
    const newest = await this.#judgeOf(delivery);
    if (newest === null) {
      this.#count(org_id, -1);
      return;
    }
    void this.#carryOut(delivery, newest).finally(() => {
      this.#count(org_id, -1);
    });
  }

  /**
   * Resolves with the newest version of the task's judge, or with null when the task has ended:
   * there is nothing to judge now.
   */
  async #judgeOf(delivery: Task): Promise<JudgeRecord | null> {
    const { book, cooldown, judges } = this.#options;
    const task = delivery.value;
    try {
      const judge = await book.newest(task.org_id, task.judge_id);
      if (judge === null) await this.#done(delivery, 'no_judge');
      else if (!judge.enabled || judge.kind !== 'llm') await this.#done(delivery, 'disabled');
      else if (judges?.isUsedUp(task.org_id) === true) await this.#done(delivery, 'quota');
      else if (!(await cooldown.admits(task, judge.cooldown_seconds))) await this.#done(delivery, 'cooldown');
      else return judge;
    } catch (error) {
      this.#again(delivery, error);
    }
    return null;
  }

  /** Judges the trace when it is its organization's turn. Never rejects. */
  async #carryOut(delivery: Task, newest: JudgeRecord): Promise<void> {
    const { stopping, cutOff } = this.#consumer;
    const task = delivery.value;
    try {
      const judge = () => this.#judgement.carryOut(task, newest, cutOff);
      await this.#done(delivery, await this.#slots.run(task.org_id, stopping, judge));
    } catch (error) {
      if (stopping.aborted) this.#consumer.retry(delivery, 0);
      else await this.#fail(delivery, newest, error);
    }
  }

  /** Retries a task that could not be carried out, or ends it when it is too old. */
  async #fail(delivery: Task, newest: JudgeRecord, error: unknown): Promise<void> {
    const task = delivery.value;
    if (this.#options.now() - task.created_at <= this.#timings.giveUpMs || error instanceof StoreUnavailable) {
      this.#again(delivery, error);
      return;
    }
    if (!(error instanceof UpstreamFailed)) {
      await this.#consumer.deadLetter(delivery, 'expired', error);
      return;
    }
    const reason = `not judged within ${Math.round(this.#timings.giveUpMs / 3_600_000)} hours: ${error.message}`;
    try {
      await this.#judgement.giveUp(task, newest, reason, this.#consumer.cutOff);
      await this.#done(delivery, 'failed');
    } catch (cause) {
      this.#again(delivery, cause);
    }
  }

  #again(delivery: Task, error: unknown): void {
    const { logger, observe } = this.#options;
    const { retry } = this.#timings;
    const asked = error instanceof UpstreamFailed ? (error.retryAfterMs ?? 0) : 0;
    const waitMs = Math.max(retryDelayMs(delivery.attempt + 1, retry), Math.min(asked, retry.maxMs));
    const level = error instanceof NotYet ? 'debug' : 'warn';
    logger[level](
      { err: error, judge_id: delivery.value.judge_id, attempt: delivery.attempt + 1 },
      'a live trace could not be judged; trying again',
    );
    observe('retried');
    this.#consumer.retry(delivery, waitMs);
  }

  async #done(delivery: Task, outcome: LiveOutcome): Promise<void> {
    this.#options.observe(outcome);
    await this.#consumer.acknowledge(delivery);
  }

  #count(org_id: string, by: 1 | -1): void {
    const left = (this.#acceptedOf.get(org_id) ?? 0) + by;
    this.#accepted += by;
    if (left > 0) this.#acceptedOf.set(org_id, left);
    else this.#acceptedOf.delete(org_id);
  }

  #sayNoUpstream(): void {
    const at = this.#options.now();
    if (at - this.#saidNoUpstream < NO_UPSTREAM_LOG_MS) return;
    this.#saidNoUpstream = at;
    this.#options.logger.warn('SERVICE_LLM_BASE_URL is not set: LLM judges judge no live traces');
  }
}
