// The consumer of a JetStream queue: every queue of the pipeline is read by one. Messages of one
// stream come through one durable pull consumer that any number of workers share, and each goes to
// `deliver`, one after the other.
//
// Contract. `deliver` may return before its work is done. Each delivery ends in exactly one call of
// `acknowledge`, `retry`, `fail` or `deadLetter`; until then this worker holds it and keeps it
// alive with `working`, so that the server redelivers it only when the worker dies. A message that
// is redelivered while it is held is not delivered a second time. Delivery is at least once: a
// worker that dies between its work and the acknowledgement leads to a repetition, which handlers
// must tolerate.
//
// What bounds it. Held messages and their bytes: messages are requested only where the largest that
// the stream accepts would fit. Redeliveries: a message that fails when it is older than
// `giveUpAfterMs`, and one that cannot be decoded, is stored as a dead letter and terminated;
// without room for the letter it stays in its queue. Shutdown: `stop` ends GIVE_BACK_MS after
// `drainMs`.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, ConsumerMessages, JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { type Codec, FINGERPRINT_HEADER, UnknownSchemaError } from '../../schemas/codec.ts';
import { MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';
import { type RetryBounds, retryDelayMs } from './backoff.ts';
import type { DeadMessage, DeadMessageReason } from './dead_letters.ts';
import { openDurable } from './durable.ts';
import { NakBatch } from './nak_batch.ts';

/** A request for messages stays open at the server for this long, then the next one is made. */
const FETCH_MS = 10_000;
/** Pause before the durable consumer is opened again after an error. */
const REOPEN_MS = 250;
/** `working` messages sent for each held message within `ackWaitMs`. */
const KEEP_ALIVES = 4;
/** Longest wait for the server to confirm an acknowledgement. */
const ACK_TIMEOUT_MS = 2000;
/** Maximum number of remembered messages whose acknowledgement was not confirmed. */
const UNCONFIRMED_MAX = 10_000;
/** Time that work under way gets to end on shutdown, unless given. */
const DRAIN_MS = 4000;
/** Time after that in which work that was cut off gives its messages back. */
const GIVE_BACK_MS = 1000;

/** One decoded message, held until it is acknowledged, retried, failed or dead-lettered. */
export interface Delivery<T> {
  readonly value: T;
  /** JetStream sequence, the same at every redelivery. */
  readonly seq: number;
  /** Time at which the message was published, milliseconds since the epoch. */
  readonly queued_at: number;
  /** Number of earlier deliveries of the message, in any process. */
  readonly attempt: number;
  readonly bytes: number;
}

export interface QueueConsumerOptions<T> {
  log: Log;
  logger: Logger;
  /** Name of the queue in dead letters, metrics and log lines: one of a closed set. */
  queue: string;
  /** Name of the durable consumer; `queue` unless given. */
  durable?: string;
  stream: string;
  /** Subject to read, fixed when the durable consumer is created; all of the stream unless given. */
  subject?: string;
  codec: Codec<T>;
  /** Starts the work of one message; the next waits until it resolves. Rejecting counts as `fail`. */
  deliver: (delivery: Delivery<T>) => Promise<void> | undefined;
  /** While this returns false, messages are acknowledged without being decoded. */
  isWanted?: () => boolean;
  /** Stores a dead letter; the message leaves its queue only after this resolves. */
  deadLetter: (message: DeadMessage) => Promise<void>;
  /** Receives the number of messages that `fail` retries and that were dead-lettered. */
  observe?: (result: 'retried' | 'dead', count: number) => void;
  /** Maximum number of held messages. */
  messagesMax: number;
  /** Maximum bytes of held messages; each requested one counts as the largest of the stream. */
  bytesMax: number;
  /** Messages requested at a time; `messagesMax` unless given. */
  fetchMax?: number;
  /**
   * Maximum number of messages that all workers together hold or have waiting for a retry. While as
   * many wait, the queue stands still; -1 sets no bound, for queues in which the retries of one
   * receiver must not delay the others.
   */
  ackPendingMax: number;
  /** Time without a sign of life of the worker after which the server redelivers its messages. */
  ackWaitMs: number;
  /** Waits before a retry that `fail` or the consumer itself causes. */
  retry: RetryBounds;
  /** `fail` dead-letters messages that are older than this; unless given, it retries for ever. */
  giveUpAfterMs?: number;
  /** True to wait for the confirmation of each acknowledgement, and to remember those without. */
  confirmAcks: boolean;
  /**
   * Time that work under way gets to end on shutdown before `cutOff` aborts; DRAIN_MS unless given.
   */
  drainMs?: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class QueueConsumer<T> {
  readonly #options: QueueConsumerOptions<T>;
  readonly #durable: string;
  /**
   * Held messages by sequence; of a redelivered message the newest delivery, which is the one to
   * answer.
   */
  readonly #held = new Map<number, JsMsg>();
  readonly #unconfirmed = new Set<number>();
  readonly #naks: NakBatch;
  readonly #stopping = new AbortController();
  readonly #cutOff = new AbortController();
  #heldBytes = 0;
  #largestBytes = MESSAGE_BYTES_MAX;
  #wakes: (() => void)[] = [];
  #fetching: ConsumerMessages | null = null;
  #reconnected = Promise.withResolvers<never>();
  #reading: Promise<void> | null = null;
  #keepAlive: NodeJS.Timeout | null = null;

  constructor(options: QueueConsumerOptions<T>) {
    this.#options = options;
    this.#durable = options.durable ?? options.queue;
    this.#naks = new NakBatch(() => options.log.nc.isClosed());
  }

  /**
   * Aborts when `stop` begins: no further message is delivered, and work that has not begun should
   * be given back.
   */
  get stopping(): AbortSignal {
    return this.#stopping.signal;
  }

  /**
   * Aborts `drainMs` after `stop` began: work that is still under way should be broken off and
   * given back.
   */
  get cutOff(): AbortSignal {
    return this.#cutOff.signal;
  }

  /**
   * Starts to consume. A server that cannot be reached and a consumer that does not exist are
   * retried.
   */
  start(): void {
    void this.#watchConnection();
    this.#reading = this.#read();
    this.#keepAlive = setInterval(() => {
      for (const message of this.#held.values())
        this.#answer(() => {
          message.working();
        });
    }, this.#options.ackWaitMs / KEEP_ALIVES);
  }

  /**
   * Stops fetching. Resolves when no message is held, or GIVE_BACK_MS after `drainMs`; the server
   * redelivers the rest.
   */
  async stop(): Promise<void> {
    const { drainMs = DRAIN_MS } = this.#options;
    this.#stopping.abort();
    this.#fetching?.stop();
    this.#naks.flush();
    this.#wake();
    const cutOff = setTimeout(() => {
      this.#cutOff.abort();
    }, drainMs);
    const late = Promise.withResolvers<undefined>();
    const end = setTimeout(late.resolve, drainMs + GIVE_BACK_MS, undefined);
    await Promise.race([Promise.all([this.#reading, this.#drained()]), late.promise]);
    for (const timer of [cutOff, end]) clearTimeout(timer);
    if (this.#keepAlive !== null) clearInterval(this.#keepAlive);
  }

  /** Ends a delivery whose work is done. */
  async acknowledge({ seq }: Pick<Delivery<T>, 'seq'>): Promise<void> {
    const message = this.#held.get(seq);
    if (message === undefined) return;
    if (this.#options.confirmAcks) {
      const confirmed = await this.#confirm(message);
      // A redelivery that arrived meanwhile replaced the message: the next one may be long to come.
      const newest = this.#held.get(seq);
      if (!confirmed && newest !== undefined && newest !== message) await this.#confirm(newest);
    } else
      this.#answer(() => {
        message.ack();
      });
    this.#release(seq);
  }

  /**
   * Ends a delivery by a negative acknowledgement: the server redelivers the message after
   * `delayMs`, at once while stopping.
   */
  retry({ seq }: Pick<Delivery<T>, 'seq'>, delayMs: number): void {
    const message = this.#held.get(seq);
    if (message === undefined) return;
    const release = () => {
      this.#release(seq);
    };
    if (this.#stopping.signal.aborted) this.#naks.now(message, release);
    else this.#naks.add(message, delayMs, release);
  }

  /**
   * Ends deliveries whose work failed: retries them with backoff, and dead-letters those older than
   * `giveUpAfterMs`.
   */
  async fail(deliveries: readonly Delivery<T>[], error: unknown): Promise<void> {
    const { logger, queue, retry, giveUpAfterMs = Infinity, now, observe } = this.#options;
    const expired = deliveries.filter(({ queued_at }) => now() - queued_at > giveUpAfterMs);
    const retried = deliveries.filter((delivery) => !expired.includes(delivery));
    for (const delivery of expired) await this.deadLetter(delivery, 'expired', error);
    const [first] = retried;
    if (first === undefined) return;
    const messages = retried.length;
    logger.warn({ err: error, queue, messages, attempt: first.attempt }, 'delivering failed; trying again');
    observe?.('retried', messages);
    for (const delivery of retried) this.retry(delivery, retryDelayMs(delivery.attempt + 1, retry));
  }

  /**
   * Ends a delivery that can never succeed: stores it as a dead letter, then terminates the
   * message; without room it is retried.
   */
  async deadLetter({ seq }: Pick<Delivery<T>, 'seq'>, reason: DeadMessageReason, cause: unknown): Promise<void> {
    const { deadLetter, queue, logger, retry, observe } = this.#options;
    const message = this.#held.get(seq);
    if (message === undefined) return;
    const detail = cause instanceof Error ? cause.message : String(cause);
    try {
      await deadLetter({ queue, reason, detail, seq, data: message.data });
    } catch (error) {
      logger.warn({ err: error, queue, seq }, 'a dead letter could not be stored; trying again');
      this.retry({ seq }, retryDelayMs(message.info.deliveryCount, retry));
      return;
    }
    observe?.('dead', 1);
    logger.error({ queue, seq, reason, detail }, 'a message can never be delivered; it is kept in DEAD_LETTERS');
    this.#answer(() => {
      message.term(reason);
    });
    this.#release(seq);
  }

  async #read(): Promise<void> {
    const { logger, queue } = this.#options;
    while (!this.#isStopping()) {
      try {
        const consumer = await this.#untilReconnect(this.#open());
        while (!this.#isStopping()) {
          // Requesting one message whenever one is released would cost a request for each message.
          while (this.#room() < this.#roomMin() && !this.#isStopping()) await this.#change();
          if (!this.#isStopping()) await this.#fetch(consumer);
        }
      } catch (error) {
        if (this.#isStopping()) return;
        logger.warn({ err: error, queue }, 'reading a queue failed; opening it again');
        await sleep(REOPEN_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      }
    }
  }

  async #open(): Promise<Consumer> {
    const { log, stream } = this.#options;
    const { config } = await log.jsm.streams.info(stream);
    this.#largestBytes = config.max_msg_size > 0 ? config.max_msg_size : MESSAGE_BYTES_MAX;
    return openDurable({ ...this.#options, durable: this.#durable });
  }

  async #fetch(consumer: Consumer): Promise<void> {
    const messages = await consumer.fetch({ max_messages: this.#room(), expires: FETCH_MS });
    this.#fetching = messages;
    if (this.#isStopping()) messages.stop();
    for await (const message of messages) {
      if (this.#isStopping()) this.#naks.now(message, () => undefined);
      else await this.#receive(message);
    }
    this.#fetching = null;
  }

  async #receive(message: JsMsg): Promise<void> {
    const { codec, deliver, isWanted } = this.#options;
    const { seq, data } = message;
    if (this.#unconfirmed.has(seq)) {
      await this.#confirm(message);
      return;
    }
    const isHeld = this.#held.has(seq);
    this.#held.set(seq, message);
    if (isHeld) return;
    this.#heldBytes += data.length;
    if (isWanted?.() === false) {
      await this.acknowledge(message);
      return;
    }
    let value: T;
    try {
      value = codec.decode(data, message.headers?.get(FINGERPRINT_HEADER));
    } catch (error) {
      const reason = error instanceof UnknownSchemaError ? 'unknown_schema' : 'unreadable_message';
      await this.deadLetter(message, reason, error);
      return;
    }
    const attempt = message.info.deliveryCount - 1;
    const delivery = { value, seq, queued_at: message.time.getTime(), attempt, bytes: data.length };
    try {
      await deliver(delivery);
    } catch (error) {
      await this.fail([delivery], error);
    }
  }

  /**
   * Acknowledges a message and returns true when the server confirmed it. Otherwise its redelivery
   * is acknowledged unseen.
   */
  async #confirm(message: JsMsg): Promise<boolean> {
    const { seq } = message;
    const confirmed = await message.ackAck({ timeout: ACK_TIMEOUT_MS }).catch(() => false);
    if (confirmed) this.#unconfirmed.delete(seq);
    else this.#unconfirmed.add(seq);
    const [oldest] = this.#unconfirmed;
    if (this.#unconfirmed.size > UNCONFIRMED_MAX && oldest !== undefined) this.#unconfirmed.delete(oldest);
    return confirmed;
  }

  /**
   * Answers a message. Without a connection the answer is lost and the message redelivered; on a
   * closed one it would throw.
   */
  #answer(send: () => void): void {
    if (!this.#options.log.nc.isClosed()) send();
  }

  #release(seq: number): void {
    const message = this.#held.get(seq);
    if (message === undefined) return;
    this.#held.delete(seq);
    this.#heldBytes -= message.data.length;
    this.#wake();
  }

  /** Returns how many messages may be requested now; always one while nothing is held. */
  #room(): number {
    const { messagesMax, bytesMax, fetchMax = messagesMax } = this.#options;
    const fitting = Math.floor((bytesMax - this.#heldBytes) / this.#largestBytes);
    const room = Math.min(fetchMax, messagesMax - this.#held.size, fitting);
    return this.#held.size === 0 ? Math.max(1, room) : room;
  }

  /** Returns the room below which no request is made: half of what fits while nothing is held. */
  #roomMin(): number {
    const { messagesMax, bytesMax, fetchMax = messagesMax } = this.#options;
    return Math.max(1, Math.ceil(Math.min(fetchMax, messagesMax, Math.floor(bytesMax / this.#largestBytes)) / 2));
  }

  /**
   * Ends an open request after each reconnect: the server that it was made of has forgotten it, and
   * it would only time out.
   */
  async #watchConnection(): Promise<void> {
    this.#reconnected.promise.catch(() => undefined);
    for await (const { type } of this.#options.log.nc.status()) {
      if (this.#isStopping()) return;
      if (type !== 'reconnect') continue;
      this.#fetching?.stop();
      const { reject } = this.#reconnected;
      this.#reconnected = Promise.withResolvers<never>();
      this.#reconnected.promise.catch(() => undefined);
      reject(new Error('the connection was lost in between'));
    }
  }

  async #untilReconnect<R>(request: Promise<R>): Promise<R> {
    return Promise.race([request, this.#reconnected.promise]);
  }

  async #drained(): Promise<void> {
    while (this.#held.size > 0) await this.#change();
  }

  /** Resolves when a message has been released, or when `stop` begins. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => this.#wakes.push(resolve));
  }

  #wake(): void {
    for (const wake of this.#wakes.splice(0)) wake();
  }

  /** A function, as the compiler would take a property for unchanged across an await. */
  #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }
}
