// Reads the ingest log for the partitions of one worker, in strict order of the log, and holds what it has read within a
// bound. An ordered consumer: no acknowledgements, gaps are noticed and read again, a restart of the server is survived.
// When the partitions change it begins again where the furthest behind of them is; who takes a message decides for whom it is new.
import { setTimeout as sleep } from 'node:timers/promises';
import type { Consumer, ConsumerMessages, JetStreamClient } from '@nats-io/jetstream';
import { DeliverPolicy } from '@nats-io/jetstream';
import type { Logger } from '../../ops/platform/logger.ts';
import { INGEST_STREAM, ingestSubject, MIXED_SUBJECT } from '../../schemas/streams.ts';
import { FINGERPRINT_HEADER } from '../../schemas/codec.ts';

export interface LogMessage {
  /** The partition that its subject names; null for a message of several. */
  partition: number | null;
  /** JetStream sequence. */
  seq: number;
  data: Uint8Array;
  fingerprint: string | undefined;
}

/** Messages that are asked for ahead. A message is about 1 MiB at most, 8 MiB where one event is that large. */
const PREFETCH_MESSAGES = 16;
/** Bytes that are held before no more is asked for. */
const BUFFERED_BYTES_MAX = 16 * 1024 * 1024;
const REOPEN_WAIT_MS = 250;
/** A reading that has been silent for this long is asked whether there is something to read. */
const STILL_MS = 5000;

/** Notices after which an ordered consumer may never deliver again by itself. */
const LOST: ReadonlySet<string> = new Set([
  'heartbeats_missed',
  'consumer_deleted',
  'consumer_not_found',
  'stream_not_found',
  'no_responders',
  'reset',
]);

/** One reading of the log, from a position, until it is closed. */
interface Reading {
  subjects: Map<string, number | null>;
  nextSeq: number;
  consumer: Consumer | null;
  messages: ConsumerMessages | null;
  /** When the last message came, or the reading was opened, on the monotonic clock. */
  heardAt: number;
  closed: boolean;
}

export class LogReader {
  readonly #js: JetStreamClient;
  readonly #logger: Logger;
  readonly #stillMs: number;
  readonly #queue: LogMessage[] = [];
  #bufferedBytes = 0;
  /** Messages behind the newest one read; unknown, so not none, until the log was asked. */
  #pending = 1;
  #reading: Reading | null = null;
  #wakeReading: (() => void) | null = null;
  #onMessage: () => void = () => undefined;

  constructor(options: { js: JetStreamClient; logger: Logger; stillMs?: number }) {
    this.#stillMs = options.stillMs ?? STILL_MS;
    this.#js = options.js;
    this.#logger = options.logger;
  }

  /** Sets what is called after each message that was read, before reading begins. */
  onMessage(listener: () => void): void {
    this.#onMessage = listener;
  }

  /** Messages of the log that were not taken yet. */
  get lag(): number {
    return this.#queue.length + this.#pending;
  }

  /** Messages read and not taken. */
  get buffered(): number {
    return this.#queue.length;
  }

  /** Reads these partitions from a JetStream sequence on; what was read and not taken is let go and read again. */
  read(partitions: readonly number[], fromSeq: number): void {
    this.stop();
    if (partitions.length === 0) return;
    const subjects = new Map<string, number | null>([[MIXED_SUBJECT, null]]);
    for (const partition of partitions) subjects.set(ingestSubject(partition), partition);
    this.#pending = 1;
    this.#open(subjects, Math.max(1, fromSeq));
  }

  #open(subjects: Reading['subjects'], nextSeq: number): void {
    const reading: Reading = {
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

  /** The oldest message read, or undefined. */
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
        if (isOpen(reading)) this.#logger.warn({ err: error }, 'reading the log failed; opening it again');
      }
      if (isOpen(reading)) await new Promise((resolve) => setTimeout(resolve, REOPEN_WAIT_MS));
    }
  }

  async #consume(reading: Reading): Promise<void> {
    const consumer = await this.#js.consumers.get(INGEST_STREAM, {
      filter_subjects: [...reading.subjects.keys()],
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: reading.nextSeq,
    });
    const info = await consumer.info();
    if (!isOpen(reading)) return;
    reading.consumer = consumer;
    this.#pending = info.num_pending;
    reading.messages = await consumer.consume({ max_messages: PREFETCH_MESSAGES });
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
        seq: message.seq,
        data: message.data,
        fingerprint: message.headers?.get(FINGERPRINT_HEADER),
      });
      this.#bufferedBytes += message.data.length;
      this.#onMessage();
      while (this.#bufferedBytes > BUFFERED_BYTES_MAX && isOpen(reading)) await this.#waitForRoom();
    }
  }

  /** Ends a reading that the server has forgotten (a restart, another leader), so that it is opened again. */
  async #watch(messages: ConsumerMessages): Promise<void> {
    for await (const { type } of messages.status()) {
      if (!LOST.has(type)) continue;
      this.#logger.info({ type }, 'the log was interrupted; reading on');
      messages.stop();
      return;
    }
  }

  /**
   * Opens a reading anew that is silent although there is something to read. Seen with three servers when one of them was sent away: the
   * consumer was made again on another server and nobody pulled from it, without a notice.
   */
  async #guard(reading: Reading): Promise<void> {
    while (isOpen(reading)) {
      await sleep(this.#stillMs, undefined, { ref: false });
      if (!isOpen(reading) || this.#wakeReading !== null || performance.now() - reading.heardAt < this.#stillMs)
        continue;
      const { heardAt } = reading;
      // No answer says no more than silence does.
      const pending = await (reading.consumer?.info() ?? Promise.reject(new Error('not open yet'))).then(
        ({ num_pending }) => num_pending,
        () => 1,
      );
      if (!isOpen(reading) || reading.heardAt !== heardAt) continue;
      this.#pending = pending;
      if (pending === 0) continue;
      this.#logger.warn(
        { pending, silent_ms: Math.round(performance.now() - heardAt) },
        'the log is silent; opening it again',
      );
      reading.closed = true;
      reading.messages?.stop();
      this.#open(reading.subjects, reading.nextSeq);
    }
  }

  async #waitForRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wakeReading = resolve;
    });
    this.#wakeReading = null;
  }
}

/** As a function: the flag changes while its reader waits. */
function isOpen(reading: Reading): boolean {
  return !reading.closed;
}
