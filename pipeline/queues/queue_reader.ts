// The reading half of a work queue: makes its durable consumer, and asks it for as many messages as there is room for. In: room.
// Out: messages, one call each. Guarantees: no more is asked for than fits; after a lost connection, a restart of the server or
// the loss of the consumer it goes on by itself.
import { setTimeout as sleep } from 'node:timers/promises';
import { AckPolicy, type Consumer, type ConsumerMessages, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { MESSAGE_BYTES_MAX } from '../../schemas/streams.ts';

export interface QueueReaderOptions {
  log: Log;
  logger: Logger;
  /** Name of the durable consumer. */
  queue: string;
  stream: string;
  /** Of the messages that are read; all of the stream's unless given. Fixed when the consumer is made. */
  subject?: string;
  /** Bounds of what is held: messages, and bytes were each as large as the stream takes. */
  messagesMax: number;
  bytesMax: number;
  /** Messages that all readers together may have unanswered; -1 is no bound. */
  unfinishedMax: number;
  ackWaitMs: number;
  /** Messages that are held now. */
  held: () => number;
  /** Resolves when some have left. */
  room: () => Promise<void>;
  take: (message: JsMsg) => Promise<void>;
  /** Called for messages that come after a stop. */
  giveBack: (message: JsMsg) => void;
}

/** A request for messages stands at the server for this long, then it is made again. */
const FETCH_MS = 10_000;
const REOPEN_MS = 250;
const NANOS_PER_MS = 1_000_000;

export class QueueReader {
  readonly #options: QueueReaderOptions;
  readonly #stopping = new AbortController();
  #fetching: ConsumerMessages | null = null;
  #reconnected = Promise.withResolvers<never>();
  #reading: Promise<void> | null = null;

  constructor(options: QueueReaderOptions) {
    this.#options = options;
  }

  start(): void {
    void this.#watch();
    this.#reading = this.#read();
  }

  /** Asks for no more; resolves when no call is under way. The caller makes room() resolve. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#fetching?.stop();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { logger, queue, held, room } = this.#options;
    while (!this.#isStopped()) {
      try {
        const { consumer, heldMax } = await this.#untilReconnect(this.#open());
        while (!this.#isStopped()) {
          // Asking for one message at a time, as each leaves, would be a request a message.
          while (held() > heldMax / 2 && !this.#isStopped()) await room();
          if (!this.#isStopped()) await this.#fetch(consumer, heldMax - held());
        }
      } catch (error) {
        if (this.#isStopped()) return;
        logger.warn({ err: error, queue }, 'reading a queue failed; opening it again');
        await sleep(REOPEN_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
      }
    }
  }

  /** What was asked of a server that went away is forgotten, and would only time out: each reconnect cuts it short. */
  async #watch(): Promise<void> {
    this.#reconnected.promise.catch(() => undefined);
    for await (const { type } of this.#options.log.nc.status()) {
      if (this.#isStopped()) return;
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

  /** Makes the durable consumer where it is missing, and brings it up to date. */
  async #open(): Promise<{ consumer: Consumer; heldMax: number }> {
    const { log, queue, stream, subject, messagesMax, bytesMax, unfinishedMax, ackWaitMs } = this.#options;
    const { config } = await log.jsm.streams.info(stream);
    const largest = config.max_msg_size > 0 ? config.max_msg_size : MESSAGE_BYTES_MAX;
    const changeable = { ack_wait: ackWaitMs * NANOS_PER_MS, max_ack_pending: unfinishedMax, max_deliver: -1 };
    const known = await log.jsm.consumers.info(stream, queue).catch(() => null);
    if (known === null) {
      const filter = subject === undefined ? {} : { filter_subject: subject };
      const made = {
        durable_name: queue,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.All,
        ...filter,
        ...changeable,
      };
      await log.jsm.consumers.add(stream, made);
    } else if (known.config.max_ack_pending !== unfinishedMax || known.config.ack_wait !== changeable.ack_wait) {
      await log.jsm.consumers.update(stream, queue, changeable);
    }
    const consumer = await log.js.consumers.get(stream, queue);
    return { consumer, heldMax: Math.max(1, Math.min(messagesMax, Math.floor(bytesMax / largest))) };
  }

  async #fetch(consumer: Consumer, count: number): Promise<void> {
    const messages = await consumer.fetch({ max_messages: count, expires: FETCH_MS });
    this.#fetching = messages;
    if (this.#isStopped()) messages.stop();
    for await (const message of messages) {
      if (this.#isStopped()) this.#options.giveBack(message);
      else await this.#options.take(message);
    }
    this.#fetching = null;
  }

  /** As a function: the flag changes while its reader waits. */
  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }
}
