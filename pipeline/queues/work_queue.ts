// One consumer of a JetStream work queue, for everything that is delivered: audit rows, mails, webhooks. In: messages of one
// stream through one durable pull consumer that any number of workers share. Out: calls of a handler, batch by batch.
// Guarantees: a message leaves the queue only after its handler is done with it; a handler that throws gets it again after
// a growing wait, whatever process it is then; what can never be done goes to the dead letters first. At least once: a
// handler must do no harm when it gets a message twice. Everything held is bounded in messages and bytes.
import type { JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type Codec, FINGERPRINT_HEADER, UnknownSchemaError } from '../../schemas/codec.ts';
import { QueueReader } from './queue_reader.ts';

/** Why a message left the queue without having been done. */
export type UndeliverableReason = 'unknown_schema' | 'unreadable_message' | 'refused' | 'expired';

/** A message that its handler gets. */
export interface QueueItem<T> {
  value: T;
  /** JetStream sequence: the same each time it is delivered. */
  seq: number;
  /** Milliseconds since the epoch at which it was put into the queue. */
  queued_at: number;
  /** How often it was delivered before, in whatever process. */
  attempt: number;
}

/** A message that leaves the queue without having been done. */
export interface DeadItem {
  /** Name of the queue, as the subject of its dead letters has it. */
  queue: string;
  reason: UndeliverableReason;
  detail: string;
  seq: number;
  data: Uint8Array;
}

/** Thrown by a handler: no later try can work either. Of a batch, the halves are tried by themselves until the culprit is alone. */
export class NeverPossible extends Error {}

export interface RetryBounds {
  /** Wait after the first failure; it doubles with each further one. */
  firstMs: number;
  maxMs: number;
}

export interface RestBounds {
  /** Times the batch's own duration: 9 leaves the work a tenth of the time. */
  times: number;
  /** However long a batch took, milliseconds. */
  maxMs: number;
}

export interface WorkQueueOptions<T> {
  log: Log;
  logger: Logger;
  /** Closed set: names the durable consumer, the dead letters and the metrics. */
  queue: string;
  stream: string;
  /** Of the messages that are read, where the stream has several kinds with readers of their own; all of them unless given. */
  subject?: string;
  codec: Codec<T>;
  /** Does the work of a batch; all of it is done when it resolves, none counts as done when it rejects. */
  handle: (batch: readonly QueueItem<T>[]) => Promise<void>;
  /** Keeps what can never be done; the message is given up only after this resolves. */
  bury: (item: DeadItem) => Promise<void>;
  /** Called once for each message that a try has ended for. */
  observe: (queue: string, result: 'done' | 'retried' | 'dead', count: number) => void;
  /** Messages held at a time, in hand or waiting here. */
  messagesMax: number;
  /** Bytes held at a time. No more messages are asked for than fit, were each as large as the stream takes. */
  bytesMax: number;
  /** Messages of one call of the handler. */
  batchMax: number;
  /** How long a batch waits for more messages, milliseconds; 0 takes what is there. */
  gatherMs: number;
  /** For work that would slow what may not wait: after a batch a handler rests, unless the next one is full. Left out, it does not. */
  rest?: RestBounds;
  /** Calls of the handler at a time; with more than one there is no order between messages. */
  handlersMax: number;
  /**
   * Messages that all workers together may hold or have waiting for their next try. While that many wait nothing else of the
   * queue moves; -1 is no bound, for queues in which one dead receiver must not hold up the others.
   */
  unfinishedMax: number;
  retry: RetryBounds;
  /**
   * The server gives a message to somebody else when nothing was heard of it for this long, milliseconds; a handler may take
   * longer, as the queue speaks for it. ACK_WAIT_MS unless given.
   */
  ackWaitMs?: number;
  /** A message that fails when it is older than this goes to the dead letters; left out, it is tried for ever. */
  giveUpAfterMs?: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Longest wait for a process that died with messages in hand, unless given. */
const ACK_WAIT_MS = 60_000;
/** How often within that wait the server hears that messages are still being worked on. */
const HEARTBEATS = 4;
const ACK_TIMEOUT_MS = 2000;
/** Done messages whose acknowledgement was not confirmed; when one comes again it is acknowledged, not done again. */
const UNCONFIRMED_MAX = 10_000;
/** What is in hand gets this long to end at a stop; after that it comes again elsewhere, as after a death. */
const STOP_MS = 5000;

interface Held<T> {
  message: JsMsg;
  item: QueueItem<T>;
}

/** Milliseconds until the next try of a message that has failed `failures` times (1 or more): doubles, with half of it left to chance. */
export function retryDelayMs(
  failures: number,
  { firstMs, maxMs }: RetryBounds,
  random: () => number = Math.random,
): number {
  const ceiling = Math.min(maxMs, firstMs * 2 ** Math.min(failures - 1, 30));
  return Math.round(ceiling / 2 + random() * (ceiling / 2));
}

export class WorkQueue<T> {
  readonly #options: WorkQueueOptions<T>;
  readonly #reader: QueueReader;
  /** By sequence, so that a message that is delivered twice while it is held is done once. In order of arrival. */
  readonly #held = new Map<number, Held<T>>();
  readonly #waiting: Held<T>[] = [];
  readonly #unconfirmed = new Set<number>();
  readonly #changed = new Set<() => void>();
  readonly #stopping = new AbortController();
  #heartbeat: NodeJS.Timeout | null = null;
  #handling: Promise<unknown> | null = null;

  constructor(options: WorkQueueOptions<T>) {
    this.#options = options;
    this.#reader = new QueueReader({
      ...options,
      ackWaitMs: this.#ackWaitMs,
      held: () => this.#held.size,
      room: () => this.#change(),
      take: (message) => this.#take(message),
      giveBack: (message) => {
        this.#giveBack(message);
      },
    });
  }

  get #ackWaitMs(): number {
    return this.#options.ackWaitMs ?? ACK_WAIT_MS;
  }

  /** Begins to work; a server that is away, or a consumer that is missing, is waited for. */
  start(): void {
    this.#reader.start();
    this.#handling = Promise.all(Array.from({ length: this.#options.handlersMax }, () => this.#work()));
    this.#heartbeat = setInterval(() => {
      for (const { message } of this.#held.values())
        this.#answer(() => {
          message.working();
        });
    }, this.#ackWaitMs / HEARTBEATS);
  }

  /** Takes no more messages, gives back those not begun, and resolves when what is in hand has ended, or after a bounded wait. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const read = this.#reader.stop();
    this.#notify();
    for (const { message } of this.#waiting.splice(0)) this.#giveBack(message);
    const timeout = Promise.withResolvers<undefined>();
    const timer = setTimeout(timeout.resolve, STOP_MS, undefined);
    await Promise.race([Promise.all([read, this.#handling]), timeout.promise]);
    clearTimeout(timer);
    if (this.#heartbeat !== null) clearInterval(this.#heartbeat);
  }

  async #take(message: JsMsg): Promise<void> {
    const { codec } = this.#options;
    if (this.#unconfirmed.has(message.seq)) {
      await this.#acknowledge(message);
      return;
    }
    const held = this.#held.get(message.seq);
    if (held !== undefined) {
      // Its acknowledgement was late: the newest delivery is the one to answer.
      held.message = message;
      return;
    }
    let value: T;
    try {
      value = codec.decode(message.data, message.headers?.get(FINGERPRINT_HEADER));
    } catch (error) {
      await this.#giveUp(message, error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message', error);
      return;
    }
    const item = {
      value,
      seq: message.seq,
      queued_at: message.time.getTime(),
      attempt: message.info.deliveryCount - 1,
    };
    const taken = { message, item };
    this.#held.set(message.seq, taken);
    this.#waiting.push(taken);
    this.#notify();
  }

  async #work(): Promise<void> {
    const { batchMax, gatherMs, rest } = this.#options;
    let restedAt = 0;
    while (!this.#isStopped()) {
      if (this.#waiting.length === 0) {
        await this.#change();
        continue;
      }
      await this.#gather(batchMax, Math.max(gatherMs, restedAt - performance.now()));
      const batch = this.#waiting.splice(0, batchMax);
      if (batch.length === 0) continue;
      const began = performance.now();
      await this.#settle(batch);
      const ended = performance.now();
      if (rest !== undefined) restedAt = ended + Math.min(rest.maxMs, (ended - began) * rest.times);
      for (const { item } of batch) this.#held.delete(item.seq);
      this.#notify();
    }
  }

  /** Ends every message of a batch: done, to be tried again, or dead. */
  async #settle(batch: readonly Held<T>[]): Promise<void> {
    const { handle, observe, queue } = this.#options;
    try {
      await handle(batch.map(({ item }) => item));
    } catch (error) {
      const [first] = batch;
      if (!(error instanceof NeverPossible)) await this.#retry(batch, error);
      else if (batch.length === 1 && first !== undefined) await this.#giveUp(first.message, 'refused', error);
      else {
        const half = Math.ceil(batch.length / 2);
        await this.#settle(batch.slice(0, half));
        await this.#settle(batch.slice(half));
      }
      return;
    }
    observe(queue, 'done', batch.length);
    await Promise.all(batch.map(({ message }) => this.#acknowledge(message)));
  }

  async #retry(batch: readonly Held<T>[], error: unknown): Promise<void> {
    const { logger, queue, retry, giveUpAfterMs, now, observe } = this.#options;
    const expired = ({ item }: Held<T>) => giveUpAfterMs !== undefined && now() - item.queued_at > giveUpAfterMs;
    const { true: old = [], false: young = [] } = Object.groupBy(batch, (held) => (expired(held) ? 'true' : 'false'));
    for (const { message } of old) await this.#giveUp(message, 'expired', error);
    if (young.length === 0) return;
    logger.warn(
      { err: error, queue, messages: young.length, attempt: young[0]?.item.attempt },
      'delivering failed; trying again',
    );
    observe(queue, 'retried', young.length);
    for (const { message, item } of young) this.#giveBack(message, retryDelayMs(item.attempt + 1, retry));
  }

  /** Keeps the message in the dead letters, then takes it out of the queue; when the letter cannot be stored the message comes again. */
  async #giveUp(message: JsMsg, reason: UndeliverableReason, cause: unknown): Promise<void> {
    const { bury, queue, logger, retry, observe } = this.#options;
    const detail = cause instanceof Error ? cause.message : String(cause);
    try {
      await bury({ queue, reason, detail, seq: message.seq, data: message.data });
    } catch (error) {
      logger.warn({ err: error, queue, seq: message.seq }, 'a dead letter could not be stored; trying again');
      this.#giveBack(message, retryDelayMs(message.info.deliveryCount, retry));
      return;
    }
    observe(queue, 'dead', 1);
    logger.error(
      { queue, seq: message.seq, reason, detail },
      'a message can never be delivered; it is kept in DEAD_LETTERS',
    );
    this.#answer(() => {
      message.term(reason);
    });
  }

  async #acknowledge(message: JsMsg): Promise<void> {
    const { seq } = message;
    const confirmed = await message.ackAck({ timeout: ACK_TIMEOUT_MS }).catch(() => false);
    if (confirmed) {
      this.#unconfirmed.delete(seq);
      return;
    }
    this.#unconfirmed.add(seq);
    const [oldest] = this.#unconfirmed;
    if (this.#unconfirmed.size > UNCONFIRMED_MAX && oldest !== undefined) this.#unconfirmed.delete(oldest);
  }

  /** For whoever is next, now or after a wait. */
  #giveBack(message: JsMsg, delayMs?: number): void {
    this.#answer(() => {
      message.nak(delayMs);
    });
  }

  /** What is said of a message while the connection is down is lost, and the message comes again; on a closed one it would throw. */
  #answer(say: () => void): void {
    if (!this.#options.log.nc.isClosed()) say();
  }

  /** As a function: the flag changes while its reader waits. */
  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  #notify(): void {
    const wakes = [...this.#changed];
    this.#changed.clear();
    for (const wake of wakes) wake();
  }

  /** Resolves when messages came or left, or at a stop. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => this.#changed.add(resolve));
  }

  /** Resolves when a batch is full, after a while, or at a stop. */
  async #gather(batchMax: number, ms: number): Promise<void> {
    if (ms <= 0) return;
    await new Promise<void>((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        this.#changed.delete(look);
        resolve();
      };
      const look = (): void => {
        if (this.#waiting.length >= batchMax || this.#isStopped()) end();
        else this.#changed.add(look);
      };
      const timer = setTimeout(end, ms);
      look();
    });
  }
}
