// Reads one partition of the ingest log in strict order from a position, and holds what it has read within a bound.
// An ordered consumer: no acknowledgements, gaps are noticed and read again, a restart of the server is survived.
import type { ConsumerMessages, JetStreamClient } from '@nats-io/jetstream';
import { DeliverPolicy } from '@nats-io/jetstream';
import type { Logger } from '../../ops/log.ts';
import { INGEST_STREAM, ingestSubject } from '../../ops/streams.ts';
import { FINGERPRINT_HEADER } from '../../schemas/codec.ts';

export interface LogMessage {
  partition: number;
  /** JetStream sequence. */
  seq: number;
  data: Uint8Array;
  fingerprint: string | undefined;
}

/** Messages that a reader asks for ahead. A message is about 1 MiB at most, 8 MiB where one event is that large. */
const PREFETCH_MESSAGES = 4;
/** Bytes that a reader holds before it stops asking for more. */
const HELD_BYTES_MAX = 2 * 1024 * 1024;
const REOPEN_WAIT_MS = 250;

export class PartitionReader {
  readonly partition: number;
  readonly #js: JetStreamClient;
  readonly #log: Logger;
  readonly #onMessage: () => void;
  readonly #queue: LogMessage[] = [];
  #heldBytes = 0;
  #nextSeq: number;
  /** Messages behind the newest one read; unknown, so not none, until the log was asked. */
  #pending = 1;
  #messages: ConsumerMessages | null = null;
  #stopped = false;
  #room: (() => void) | null = null;

  /** @param fromSeq first JetStream sequence to read */
  constructor(options: { js: JetStreamClient; partition: number; fromSeq: number; log: Logger; onMessage: () => void }) {
    this.partition = options.partition;
    this.#js = options.js;
    this.#log = options.log;
    this.#nextSeq = options.fromSeq;
    this.#onMessage = options.onMessage;
  }

  /** Messages of the log that were not taken yet. */
  get lag(): number {
    return this.#queue.length + this.#pending;
  }

  /** Messages read and not taken. */
  get held(): number {
    return this.#queue.length;
  }

  start(): void {
    void this.#run();
  }

  stop(): void {
    this.#stopped = true;
    this.#messages?.stop();
    this.#queue.length = 0;
    this.#room?.();
  }

  /** The oldest message read, or undefined. */
  take(): LogMessage | undefined {
    const message = this.#queue.shift();
    if (message !== undefined) {
      this.#heldBytes -= message.data.length;
      this.#room?.();
    }
    return message;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      try {
        await this.#read();
      } catch (error) {
        this.#log.warn({ err: error, partition: this.partition }, 'reading the log failed; opening it again');
      }
      if (!this.#isStopped()) await new Promise((resolve) => setTimeout(resolve, REOPEN_WAIT_MS));
    }
  }

  async #read(): Promise<void> {
    const consumer = await this.#js.consumers.get(INGEST_STREAM, {
      filter_subjects: ingestSubject(this.partition),
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: Math.max(1, this.#nextSeq),
    });
    this.#pending = (await consumer.info()).num_pending;
    this.#messages = await consumer.consume({ max_messages: PREFETCH_MESSAGES });
    for await (const message of this.#messages) {
      if (this.#stopped) return;
      this.#pending = message.info.pending;
      if (message.seq < this.#nextSeq) continue;
      this.#nextSeq = message.seq + 1;
      this.#queue.push({
        partition: this.partition,
        seq: message.seq,
        data: message.data,
        fingerprint: message.headers?.get(FINGERPRINT_HEADER),
      });
      this.#heldBytes += message.data.length;
      this.#onMessage();
      while (this.#heldBytes > HELD_BYTES_MAX && !this.#isStopped()) await this.#waitForRoom();
    }
  }

  #isStopped(): boolean {
    return this.#stopped;
  }

  async #waitForRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
    this.#room = null;
  }
}
