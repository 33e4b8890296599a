// Reads a stream through a durable consumer that all workers share, for as long as the worker runs. In: messages. Out: calls,
// one after the other; a call that returns a promise is waited for. Whoever is called answers the message.
// Guarantees: a connection or a consumer that was lost is made again; at a stop no call is begun any more.
import { setTimeout as sleep } from 'node:timers/promises';
import { AckPolicy, type ConsumerMessages, DeliverPolicy, type JsMsg } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';

const REOPEN_MS = 500;

export interface DurableReaderOptions {
  log: Log;
  logger: Logger;
  stream: string;
  /** Of the messages that are read; all of the stream's unless given. Fixed when the consumer is made. */
  subject?: string;
  durable: string;
  /** The server gives a message to somebody else when nothing was heard of it for this long. */
  ackWaitMs: number;
  /** Messages that all workers together may have unanswered; -1 is no bound. */
  unansweredMax: number;
  /** Messages that wait here to be handled. */
  messagesMax: number;
  handle: (message: JsMsg) => Promise<void> | undefined;
}

export class DurableReader {
  readonly #options: DurableReaderOptions;
  readonly #stopping = new AbortController();
  #messages: ConsumerMessages | null = null;
  #reading: Promise<void> | null = null;

  constructor(options: DurableReaderOptions) {
    this.#options = options;
  }

  start(): void {
    this.#reading ??= this.#read();
  }

  /** Resolves when the call under way has ended. What was read and not handled goes back at once. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#messages?.stop();
    await this.#reading;
  }

  #isStopped(): boolean {
    return this.#stopping.signal.aborted;
  }

  async #read(): Promise<void> {
    const { logger, stream, durable } = this.#options;
    while (!this.#isStopped()) {
      try {
        await this.#consume();
      } catch (error) {
        if (this.#isStopped()) return;
        logger.warn({ err: error, stream, consumer: durable }, 'reading a stream failed; opening it again');
      }
      if (!this.#isStopped())
        await sleep(REOPEN_MS, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
    }
  }

  async #consume(): Promise<void> {
    const { log, stream, durable, messagesMax, handle } = this.#options;
    await this.#ensure();
    const consumer = await log.js.consumers.get(stream, durable);
    const messages = await consumer.consume({ max_messages: messagesMax, abort_on_missing_resource: true });
    this.#messages = messages;
    if (this.#isStopped()) messages.stop();
    for await (const message of messages) {
      if (this.#isStopped()) {
        if (!log.nc.isClosed()) message.nak();
        continue;
      }
      const done = handle(message);
      if (done !== undefined) await done;
    }
    this.#messages = null;
  }

  /** Makes the durable consumer where it is missing, and brings its bounds up to date. */
  async #ensure(): Promise<void> {
    const { log, stream, subject, durable, ackWaitMs, unansweredMax } = this.#options;
    const bounds = { ack_wait: ackWaitMs * 1_000_000, max_ack_pending: unansweredMax, max_deliver: -1 };
    const known = await log.jsm.consumers.info(stream, durable).catch(() => null);
    if (known === null) {
      const filter = subject === undefined ? {} : { filter_subject: subject };
      const made = {
        durable_name: durable,
        ack_policy: AckPolicy.Explicit,
        deliver_policy: DeliverPolicy.All,
        ...filter,
        ...bounds,
      };
      await log.jsm.consumers.add(stream, made);
    } else if (known.config.ack_wait !== bounds.ack_wait || known.config.max_ack_pending !== bounds.max_ack_pending) {
      await log.jsm.consumers.update(stream, durable, bounds);
    }
  }
}
