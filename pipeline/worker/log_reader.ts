// Reads one stream of the ingest log for the partitions of one worker, in log order, and buffers what
// it has read within a bound.
//
// It uses an ordered consumer: there are no acknowledgements, gaps are read again, and reading
// survives a restart of the server. When the partitions change, it starts again at the checkpoint
// that is furthest behind; the caller of `take` decides for which partitions a message is new.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, ConsumerMessages, JetStreamClient } from '@nats-io/jetstream';
import { DeliverPolicy } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import type { LogStream } from '../../schemas/log_layout.ts';
import { ingestSubject } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER } from '../../schemas/codec.ts';

export interface LogMessage {
  /** The partition that the subject names; null for a message with events of several partitions. */
  partition: number | null;
  /** Partitions that are read from the stream of the message. */
  readers: readonly number[];
  /** Position in the log. */
  position: number;
  data: Uint8Array;
  fingerprint: string | undefined;
}

/**
 * Messages of all streams that are fetched ahead while their size is unknown or large. A message is
 * about 1 MiB at most, or 8 MiB if it holds one event of that size.
 */
export const PREFETCH_MESSAGES = 16;
/** Maximum bytes of all streams that are buffered before fetching pauses. */
export const BUFFERED_BYTES_MAX = 16 * 1024 * 1024;
const REOPEN_WAIT_MS = 250;
/** After this time without a message, the reader asks the server whether messages are pending. */
const STILL_MS = 5000;

/** Status notices after which an ordered consumer may never deliver again by itself. */
const LOST: ReadonlySet<string> = new Set([
  'heartbeats_missed',
  'consumer_deleted',
  'consumer_not_found',
  'stream_not_found',
  'no_responders',
  'reset',
]);

/** One pass over the log from a sequence on, until it is closed. */
interface Reading {
  stream: LogStream;
  partitions: readonly number[];
  subjects: Map<string, number | null>;
  nextSeq: number;
  consumer: Consumer | null;
  messages: ConsumerMessages | null;
  /**
   * When the last message arrived, or the reading was opened, on the monotonic clock in
   * milliseconds.
   */
  heardAt: number;
  closed: boolean;
}

export interface LogReaderOptions {
  js: JetStreamClient;
  logger: Logger;
  /** Silence after which the server is asked for pending messages, in milliseconds; STILL_MS by default. */
  stillMs?: number;
  /** Maximum bytes buffered before fetching pauses; BUFFERED_BYTES_MAX by default. */
  bytesMax?: number;
  /** Messages fetched ahead; PREFETCH_MESSAGES by default. */
  prefetch?: number;
}

export class LogReader {
  readonly #js: JetStreamClient;
  readonly #logger: Logger;
  readonly #stillMs: number;
  readonly #bytesMax: number;
  readonly #prefetch: number;
  readonly #queue: LogMessage[] = [];
  #bufferedBytes = 0;
  /**
   * Messages in the log after the newest one read. 1 until the server has said how many there are,
   * so that the lag is not taken to be 0.
   */
  #pending = 1;
  #reading: Reading | null = null;
  #wakeReading: (() => void) | null = null;
  #onMessage: () => void = () => undefined;

  constructor(options: LogReaderOptions) {
    this.#bytesMax = options.bytesMax ?? BUFFERED_BYTES_MAX;
    this.#prefetch = options.prefetch ?? PREFETCH_MESSAGES;
    this.#stillMs = options.stillMs ?? STILL_MS;
    this.#js = options.js;
    this.#logger = options.logger;
  }

  /** Sets the function that is called after each message read, and when the lag becomes known. Call it before `read`. */
  onMessage(listener: () => void): void {
    this.#onMessage = listener;
  }

  /** Messages of the log that were not taken yet. */
  get lag(): number {
    return this.#queue.length + this.#pending;
  }

  /** Bytes of the messages that were read and not taken yet. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  /** Messages that were read and not taken yet. */
  get buffered(): number {
    return this.#queue.length;
  }

  /**
   * Reads these partitions of a stream from a sequence on. Buffered messages are discarded and read
   * again.
   */
  read(stream: LogStream, partitions: readonly number[], fromSeq: number): void {
    this.stop();
    if (partitions.length === 0) return;
    this.#pending = 1;
    this.#open(stream, partitions, Math.max(1, fromSeq));
  }

  #open(stream: LogStream, partitions: readonly number[], nextSeq: number): void {
    const subjects = new Map<string, number | null>([[stream.mixed, null]]);
    if (!stream.isOpen) subjects.set(stream.endSubject, null);
    for (const partition of partitions) subjects.set(ingestSubject(partition), partition);
    const reading: Reading = {
      stream,
      partitions,
      subjects,
      nextSeq,
      consumer: null,
      messages: null,
      heardAt: performance.now(),
      closed: false,
    };
    this.#reading = reading;
    void this.#run(reading);
    void this.#guard(reading);
  }

  stop(): void {
    const reading = this.#reading;
    this.#reading = null;
    this.#queue.length = 0;
    this.#bufferedBytes = 0;
    this.#pending = 0;
    if (reading === null) return;
    reading.closed = true;
    reading.messages?.stop();
    this.#wakeReading?.();
  }

  /** Returns the oldest buffered message, or undefined if there is none. */
  take(): LogMessage | undefined {
    const message = this.#queue.shift();
    if (message !== undefined) {
      this.#bufferedBytes -= message.data.length;
      this.#wakeReading?.();
    }
    return message;
  }

  async #run(reading: Reading): Promise<void> {
    while (!reading.closed) {
      try {
        await this.#consume(reading);
      } catch (error) {
        if (isOpen(reading)) this.#logger.warn({ err: error }, 'reading the ingest log failed; opening it again');
      }
      if (isOpen(reading)) await new Promise((resolve) => setTimeout(resolve, REOPEN_WAIT_MS));
    }
  }

  async #consume(reading: Reading): Promise<void> {
    const consumer = await this.#js.consumers.get(reading.stream.name, {
      filter_subjects: [...reading.subjects.keys()],
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: reading.nextSeq,
    });
    const info = await consumer.info();
    if (!isOpen(reading)) return;
    reading.consumer = consumer;
    this.#pending = info.num_pending;
    this.#onMessage();
    reading.messages = await consumer.consume({ max_messages: this.#prefetch });
    if (!isOpen(reading)) {
      reading.messages.stop();
      return;
    }
    void this.#watch(reading.messages);
    for await (const message of reading.messages) {
      if (!isOpen(reading)) return;
      reading.heardAt = performance.now();
      this.#pending = message.info.pending;
      if (message.seq < reading.nextSeq) continue;
      reading.nextSeq = message.seq + 1;
      const partition = reading.subjects.get(message.subject) ?? null;
      this.#queue.push({
        partition,
        readers: reading.partitions,
        position: reading.stream.position(message.seq),
        data: message.data,
        fingerprint: message.headers?.get(FINGERPRINT_HEADER),
      });
      this.#bufferedBytes += message.data.length;
      this.#onMessage();
      while (this.#bufferedBytes > this.#bytesMax && isOpen(reading)) await this.#waitForRoom();
    }
  }

  /**
   * Ends a reading whose consumer the server has lost (after a restart or a change of leader), so
   * that it is opened again.
   */
  async #watch(messages: ConsumerMessages): Promise<void> {
    for await (const { type } of messages.status()) {
      if (!LOST.has(type)) continue;
      this.#logger.info({ type }, 'reading the ingest log was interrupted; opening it again');
      messages.stop();
      return;
    }
  }

  /**
   * Reopens a reading that is silent although messages are pending. This happened with three
   * servers when one of them was removed: the consumer was recreated on another server, and nothing
   * pulled from it or gave notice.
   */
  async #guard(reading: Reading): Promise<void> {
    while (isOpen(reading)) {
      await sleep(this.#stillMs, undefined, { ref: false });
      if (!isOpen(reading) || this.#wakeReading !== null || performance.now() - reading.heardAt < this.#stillMs)
        continue;
      const { heardAt } = reading;
      // If the server does not answer, the reading counts as silent.
      const pending = await (reading.consumer?.info() ?? Promise.reject(new Error('not open yet'))).then(
        ({ num_pending }) => num_pending,
        () => 1,
      );
      if (!isOpen(reading) || reading.heardAt !== heardAt) continue;
      this.#pending = pending;
      if (pending === 0) {
        this.#onMessage();
        continue;
      }
      this.#logger.warn(
        { pending, silent_ms: Math.round(performance.now() - heardAt) },
        'the ingest log is silent although messages are pending; opening it again',
      );
      reading.closed = true;
      reading.messages?.stop();
      this.#open(reading.stream, reading.partitions, reading.nextSeq);
    }
  }

  async #waitForRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeReading = resolve;
    });
    this.#wakeReading = null;
  }
}

/** A function, because the compiler would narrow the flag, which changes during an await. */
function isOpen(reading: Reading): boolean {
  return !reading.closed;
}
