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
const HELD_BYTES_MAX = 16 * 1024 * 1024;
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
interface Session {
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
  readonly #log: Logger;
  readonly #stillMs: number;
  readonly #onMessage: () => void;
  readonly #queue: LogMessage[] = [];
  #heldBytes = 0;
  /** Messages behind the newest one read; unknown, so not none, until the log was asked. */
  #pending = 1;
  #session: Session | null = null;
  #room: (() => void) | null = null;

  constructor(options: { js: JetStreamClient; log: Logger; onMessage: () => void; stillMs?: number }) {
    this.#stillMs = options.stillMs ?? STILL_MS;
    this.#js = options.js;
    this.#log = options.log;
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

  /** Reads these partitions from a JetStream sequence on; what was read and not taken is let go and read again. */
  read(partitions: readonly number[], fromSeq: number): void {
    this.stop();
    if (partitions.length === 0) return;
    const subjects = new Map<string, number | null>([[MIXED_SUBJECT, null]]);
    for (const partition of partitions) subjects.set(ingestSubject(partition), partition);
    this.#pending = 1;
    this.#open(subjects, Math.max(1, fromSeq));
  }

  #open(subjects: Session['subjects'], nextSeq: number): void {
    const session: Session = {
      subjects,
      nextSeq,
      consumer: null,
      messages: null,
      heardAt: performance.now(),
      closed: false,
    };
    this.#session = session;
    void this.#run(session);
    void this.#guard(session);
  }

  stop(): void {
    const session = this.#session;
    this.#session = null;
    this.#queue.length = 0;
    this.#heldBytes = 0;
    this.#pending = 0;
    if (session === null) return;
    session.closed = true;
    session.messages?.stop();
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

  async #run(session: Session): Promise<void> {
    while (!session.closed) {
      try {
        await this.#consume(session);
      } catch (error) {
        if (isOpen(session)) this.#log.warn({ err: error }, 'reading the log failed; opening it again');
      }
      if (isOpen(session)) await new Promise((resolve) => setTimeout(resolve, REOPEN_WAIT_MS));
    }
  }

  async #consume(session: Session): Promise<void> {
    const consumer = await this.#js.consumers.get(INGEST_STREAM, {
      filter_subjects: [...session.subjects.keys()],
      deliver_policy: DeliverPolicy.StartSequence,
      opt_start_seq: session.nextSeq,
    });
    const info = await consumer.info();
    if (!isOpen(session)) return;
    session.consumer = consumer;
    this.#pending = info.num_pending;
    session.messages = await consumer.consume({ max_messages: PREFETCH_MESSAGES });
    if (!isOpen(session)) {
      session.messages.stop();
      return;
    }
    void this.#watch(session.messages);
    for await (const message of session.messages) {
      if (!isOpen(session)) return;
      session.heardAt = performance.now();
      this.#pending = message.info.pending;
      if (message.seq < session.nextSeq) continue;
      session.nextSeq = message.seq + 1;
      const partition = session.subjects.get(message.subject) ?? null;
      this.#queue.push({
        partition,
        seq: message.seq,
        data: message.data,
        fingerprint: message.headers?.get(FINGERPRINT_HEADER),
      });
      this.#heldBytes += message.data.length;
      this.#onMessage();
      while (this.#heldBytes > HELD_BYTES_MAX && isOpen(session)) await this.#waitForRoom();
    }
  }

  /** Ends a reading that the server has forgotten (a restart, another leader), so that it is opened again. */
  async #watch(messages: ConsumerMessages): Promise<void> {
    for await (const { type } of messages.status()) {
      if (!LOST.has(type)) continue;
      this.#log.info({ type }, 'the log was interrupted; reading on');
      messages.stop();
      return;
    }
  }

  /**
   * Opens a reading anew that is silent although there is something to read. Seen with three servers when one of them was sent away: the
   * consumer was made again on another server and nobody pulled from it, without a notice.
   */
  async #guard(session: Session): Promise<void> {
    while (isOpen(session)) {
      await sleep(this.#stillMs, undefined, { ref: false });
      if (!isOpen(session) || this.#room !== null || performance.now() - session.heardAt < this.#stillMs) continue;
      const { heardAt } = session;
      // No answer says no more than silence does.
      const pending = await (session.consumer?.info() ?? Promise.reject(new Error('not open yet'))).then(
        ({ num_pending }) => num_pending,
        () => 1,
      );
      if (!isOpen(session) || session.heardAt !== heardAt) continue;
      this.#pending = pending;
      if (pending === 0) continue;
      this.#log.warn(
        { pending, silent_ms: Math.round(performance.now() - heardAt) },
        'the log is silent; opening it again',
      );
      session.closed = true;
      session.messages?.stop();
      this.#open(session.subjects, session.nextSeq);
    }
  }

  async #waitForRoom(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#room = resolve;
    });
    this.#room = null;
  }
}

/** As a function: the flag changes while its reader waits. */
function isOpen(session: Session): boolean {
  return !session.closed;
}
