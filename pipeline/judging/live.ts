// Judges live traces by LLM judges. In: tasks of judging.live, one a trace and judge, shared by all workers. Out: a row of scores each, and
// the breach where it is one. Guarantees: a task leaves the queue when its row is stored, or when there is nothing to judge; a worker
// that dies gives it to another, which finds the row, or the answer that was kept, before it asks the upstream anew. An upstream that is
// slow or away holds nothing but its tasks, each with a growing wait, for a day; then they end as errors. One org's tasks delay another's
// by one turn. Everything held is bounded; what finds no room comes again.
// What can repeat: see recorded_calls.ts; and an event of a breach, told twice under one id.
import type { JsMsg } from '@nats-io/jetstream';
import { UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { JUDGING_STREAM, judgingSubject } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER, type JudgingTask, judgingTaskCodec, UnknownSchemaError } from '../../schemas/codec.ts';
import type { JudgeRecord } from '../../schemas/records/judge.ts';
import { type ClickHouse, StoreUnavailable } from '../../sql/client/client.ts';
import { createBurial } from '../queues/dead_items.ts';
import { DurableReader } from '../queues/durable_reader.ts';
import { NakBatch } from '../queues/nak_batch.ts';
import { retryDelayMs, type RetryBounds } from '../queues/work_queue.ts';
import type { Cooldown } from './cooldown.ts';
import { FairSlots } from '../../ops/platform/fair_slots.ts';
import type { JudgeBook } from './judge_book.ts';
import { type JudgementOutcome, LiveJudgement, NotYet } from './live_judgement.ts';
import type { LlmJudges } from './llm_judges.ts';

const LIVE_QUEUE = 'judging_live';
/** Tasks in hand, those that wait for their turn included; some hundred bytes each. */
const HELD_MAX = 4000;
/** Of them, of one org. */
const HELD_ORG_MAX = 1000;
/** Judgements under way, of all orgs and of one. */
const RUNNING = { totalMax: 16, orgMax: 4 };
/** A task that found no room comes again after this, and up to twice of it. */
const NO_ROOM_MS = 10_000;
/** So the longest wait is NO_ROOM_MS times 64, and up to twice that: 11 to 21 minutes. */
const NO_ROOM_DOUBLINGS_MAX = 6;
const HEARTBEATS = 4;
const NO_UPSTREAM_LOG_MS = 60_000;

/** How a task ended. */
export type LiveOutcome = JudgementOutcome | 'cooldown' | 'disabled' | 'no_judge' | 'no_upstream' | 'dead';

export interface LiveTimings {
  /** What a worker had in hand that died is another's after this long. */
  ackWaitMs: number;
  retry: RetryBounds;
  /** A task that could not be carried out for this long ends. */
  giveUpMs: number;
  /** A trace that is not there for this long is gone. */
  missingMs: number;
  /** What is under way gets this long to end at a stop. */
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
  book: Pick<JudgeBook, 'newest' | 'version'>;
  cooldown: Pick<Cooldown, 'admits'>;
  /** null: there is no upstream, nothing is judged. */
  judges: Pick<LlmJudges, 'judge' | 'isUsedUp'> | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Told how each task ended, and of each that is to be tried again. */
  observe: (outcome: LiveOutcome | 'retried') => void;
  onTold: (event: string) => void;
  timings?: LiveTimings;
}

interface Held {
  /** The newest delivery of the message. */
  message: JsMsg;
  task: JudgingTask;
}

export class LiveJudging {
  readonly #options: LiveJudgingOptions;
  readonly #timings: LiveTimings;
  readonly #reader: DurableReader;
  readonly #slots = new FairSlots(RUNNING);
  /** By stream sequence. */
  readonly #inHand = new Map<number, Held>();
  readonly #heldOf = new Map<string, number>();
  readonly #tasks = new Set<Promise<void>>();
  readonly #later: NakBatch;
  readonly #judgement: LiveJudgement;
  readonly #bury: ReturnType<typeof createBurial>;
  /** Ends what waits for its turn. */
  readonly #stopping = new AbortController();
  /** Ends what is under way. */
  readonly #breakOff = new AbortController();
  #heartbeat: NodeJS.Timeout | null = null;
  #saidNoUpstream = -Infinity;

  constructor(options: LiveJudgingOptions) {
    this.#options = options;
    this.#timings = options.timings ?? LIVE_TIMINGS;
    this.#later = new NakBatch(() => options.log.nc.isClosed(), options.now);
    this.#judgement = new LiveJudgement({ ...options, missingMs: this.#timings.missingMs });
    this.#bury = createBurial(options.log, options.now);
    this.#reader = new DurableReader({
      log: options.log,
      logger: options.logger,
      stream: JUDGING_STREAM,
      subject: judgingSubject('live'),
      durable: LIVE_QUEUE,
      ackWaitMs: this.#timings.ackWaitMs,
      // What waits for its next try counts as unanswered: with a bound, one org's would keep the others' out.
      unansweredMax: -1,
      messagesMax: 500,
      handle: (message) => this.#take(message),
    });
  }

  start(): void {
    this.#reader.start();
    this.#heartbeat = setInterval(() => {
      if (!this.#options.log.nc.isClosed()) for (const { message } of this.#inHand.values()) message.working();
    }, this.#timings.ackWaitMs / HEARTBEATS);
  }

  /** Ends what is under way, within a bounded time; what waits goes back to the queue. */
  async stop(): Promise<void> {
    await this.#reader.stop();
    this.#stopping.abort();
    const timer = setTimeout(() => {
      this.#breakOff.abort();
    }, this.#timings.stopMs);
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    clearTimeout(timer);
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat);
    this.#later.flush();
  }

  /** Looks at a task as it comes: most traces of a busy agent are within its judges' cooldown, and are through at once. */
  async #take(message: JsMsg): Promise<void> {
    const known = this.#inHand.get(message.seq);
    if (known !== undefined) {
      known.message = message;
      return;
    }
    let task: JudgingTask;
    try {
      task = judgingTaskCodec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER));
    } catch (error) {
      await this.#giveUp(message, error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message', error);
      return;
    }
    if (this.#options.judges === null) {
      this.#sayNoUpstream();
      this.#done(message, 'no_upstream');
      return;
    }
    if (this.#options.judges.isUsedUp(task.org_id)) {
      this.#done(message, 'quota');
      return;
    }
    const own = this.#heldOf.get(task.org_id) ?? 0;
    if (this.#inHand.size >= HELD_MAX || own >= HELD_ORG_MAX) {
      // Rarer each time: a million that wait for a model that is away, all coming round every few seconds, would be the worker's main work.
      const times = 2 ** Math.min(message.info.deliveryCount - 1, NO_ROOM_DOUBLINGS_MAX);
      this.#later.add(message, NO_ROOM_MS * times * (1 + Math.random()), () => undefined);
      return;
    }
    const held: Held = { message, task };
    this.#inHand.set(message.seq, held);
    this.#heldOf.set(task.org_id, own + 1);
    await this.#begin(held);
  }

  async #begin(held: Held): Promise<void> {
    const { book, cooldown, judges } = this.#options;
    const { task } = held;
    let judge: JudgeRecord | null;
    try {
      judge = await book.newest(task.org_id, task.judge_id);
      const skipped = judge === null ? 'no_judge' : !judge.enabled || judge.kind !== 'llm' ? 'disabled' : null;
      if (judge === null || skipped !== null) {
        this.#end(held, skipped ?? 'no_judge');
        return;
      }
      if (judges?.isUsedUp(task.org_id) === true) {
        this.#end(held, 'quota');
        return;
      }
      if (!(await cooldown.admits(task, judge.cooldown_seconds))) {
        this.#end(held, 'cooldown');
        return;
      }
    } catch (error) {
      this.#again(held, error);
      return;
    }
    const tracked = this.#carryOut(held, judge).finally(() => this.#tasks.delete(tracked));
    this.#tasks.add(tracked);
  }

  async #carryOut(held: Held, newest: JudgeRecord): Promise<void> {
    try {
      this.#end(
        held,
        await this.#slots.run(held.task.org_id, this.#stopping.signal, () =>
          this.#judgement.carryOut(held.task, newest, this.#breakOff.signal),
        ),
      );
    } catch (error) {
      if (this.#stopping.signal.aborted) this.#giveBack(held, 0);
      else await this.#fail(held, newest, error);
    }
  }

  /** A task that could not be carried out: to be tried again, or ended when its time is over. */
  async #fail(held: Held, newest: JudgeRecord, error: unknown): Promise<void> {
    const { now } = this.#options;
    const { task, message } = held;
    if (now() - task.created_at <= this.#timings.giveUpMs || error instanceof StoreUnavailable) {
      this.#again(held, error);
      return;
    }
    try {
      if (error instanceof UpstreamFailed) {
        const hours = String(Math.round(this.#timings.giveUpMs / 3_600_000));
        await this.#judgement.giveUp(
          task,
          newest,
          `not judged within ${hours} hours: ${error.message}`,
          this.#breakOff.signal,
        );
        this.#end(held, 'failed');
      } else {
        await this.#giveUp(message, 'expired', error);
        this.#release(held);
      }
    } catch (cause) {
      this.#again(held, cause);
    }
  }

  #again(held: Held, error: unknown): void {
    const { logger, observe } = this.#options;
    const failures = held.message.info.deliveryCount;
    const asked = error instanceof UpstreamFailed ? (error.retryAfterMs ?? 0) : 0;
    const waitMs = Math.max(retryDelayMs(failures, this.#timings.retry), Math.min(asked, this.#timings.retry.maxMs));
    const level = error instanceof NotYet ? 'debug' : 'warn';
    logger[level](
      { err: error, judge_id: held.task.judge_id, attempt: failures },
      'a live trace could not be judged; trying again',
    );
    observe('retried');
    this.#giveBack(held, waitMs);
  }

  #end(held: Held, outcome: LiveOutcome): void {
    this.#release(held);
    this.#done(held.message, outcome);
  }

  #done(message: JsMsg, outcome: LiveOutcome): void {
    this.#options.observe(outcome);
    // Not heard, the message comes again, and its row is found.
    if (!this.#options.log.nc.isClosed()) message.ack();
  }

  #giveBack(held: Held, waitMs: number): void {
    this.#later.add(held.message, waitMs, () => {
      this.#release(held);
    });
  }

  #release({ message, task }: Held): void {
    if (!this.#inHand.delete(message.seq)) return;
    const left = (this.#heldOf.get(task.org_id) ?? 1) - 1;
    if (left > 0) this.#heldOf.set(task.org_id, left);
    else this.#heldOf.delete(task.org_id);
  }

  async #giveUp(
    message: JsMsg,
    reason: 'unknown_schema' | 'unreadable_message' | 'expired',
    cause: unknown,
  ): Promise<void> {
    const { logger, observe, log } = this.#options;
    const detail = cause instanceof Error ? cause.message : String(cause);
    try {
      await this.#bury({ queue: LIVE_QUEUE, reason, detail, seq: message.seq, data: message.data });
    } catch (error) {
      logger.warn({ err: error, seq: message.seq }, 'a dead letter could not be stored; trying again');
      this.#later.add(message, this.#timings.retry.maxMs, () => undefined);
      return;
    }
    observe('dead');
    logger.error(
      { seq: message.seq, reason, detail },
      'a task of judging can never be carried out; it is kept in DEAD_LETTERS',
    );
    if (!log.nc.isClosed()) message.term(reason);
  }

  #sayNoUpstream(): void {
    const at = this.#options.now();
    if (at - this.#saidNoUpstream < NO_UPSTREAM_LOG_MS) return;
    this.#saidNoUpstream = at;
    this.#options.logger.warn('SERVICE_LLM_BASE_URL is not set: LLM judges judge no live traces');
  }
}
