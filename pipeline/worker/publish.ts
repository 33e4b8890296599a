// Publishes what follows from a landing: platform events to EVENTS, judging tasks to JUDGING, dead
// letters to DEAD_LETTERS.
//
// Every call resolves only when JetStream has stored its messages, however long that takes, because
// the checkpoint waits for it. Message ids are derived from the contents, so that JetStream
// recognizes what is published again after a crash. A message that is too large is halved or
// becomes a dead letter. A dead letter for which DEAD_LETTERS has no room is logged and counted, so
// that one organization cannot stop the others.
import { createHash } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import type { Logger } from '../../ops/platform/logger.ts';
import { isTooLarge } from '../../ops/platform/nats/refused.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT, judgingSubject } from '../../schemas/streams.ts';
import {
  type DeadLetter,
  FINGERPRINT_HEADER,
  judgingTaskCodec,
  type JudgingTask,
  serviceEventsCodec,
  type ServiceEvent,
} from '../../schemas/codec.ts';
import { pieces } from '../domain/text/pieces.ts';
import { hex16 } from '../domain/traces/ids.ts';
import { LIMITS } from '../limits.ts';
import { backoffMs } from '../queues/backoff.ts';
import { DeadLetters, itemLetter, NoRoomForLetter } from '../queues/dead_letters.ts';
import type { DeadLetterEntry } from './prepare.ts';
import type { TraceEvent } from '../traces/trace_events.ts';

const PUBLISH_TIMEOUT_MS = 3000;
/**
 * Maximum dead letters published at a time, and their bytes. The landings of every organization
 * wait until all of them are stored.
 */
const DEAD_LETTER_BATCH = { count: 64, bytes: 16 * 1024 * 1024 };
const EVENT_BATCH = { count: LIMITS.service_events_batch_max, bytes: LIMITS.service_events_bytes_max };
/** Bytes that an event takes in its message beside its strings. */
const EVENT_FRAME_BYTES = 32;

const entryBytes = ({ event, raw }: DeadLetterEntry): number => event?.body.length ?? raw?.length ?? 0;

const eventBytes = ({ event_id, event, org_id, payload }: ServiceEvent): number =>
  Buffer.byteLength(payload) +
  Buffer.byteLength(org_id) +
  Buffer.byteLength(event) +
  event_id.length +
  EVENT_FRAME_BYTES;

/**
 * Returns the id of a platform event: `evt_` and 16 hex digits of a hash of its contents. An event
 * that is published again has the same id.
 */
export function serviceEventId({ event, org_id, trace_id, subject }: TraceEvent): string {
  const parts = [event, org_id, trace_id, ...(subject === undefined ? [] : [subject])];
  return `evt_${hex16(parts.join('\n'))}`;
}

export interface PublisherOptions {
  now(): number;
  /** Counts platform events that were published. */
  onPublished(event: string, count: number): void;
  /** Counts a dead letter for which DEAD_LETTERS had no room. */
  onLetterLost(): void;
}

export class Publisher {
  readonly #log: Log;
  readonly #logger: Logger;
  readonly #options: PublisherOptions;
  readonly #letters: DeadLetters;

  constructor(log: Log, logger: Logger, options: PublisherOptions) {
    this.#log = log;
    this.#logger = logger;
    this.#options = options;
    this.#letters = new DeadLetters(log);
  }

  /** Resolves once every event is stored: in EVENTS, or in DEAD_LETTERS if it exceeds the maximum message size. */
  async publishEvents(events: readonly TraceEvent[]): Promise<void> {
    const records = events.values().map((event): ServiceEvent => ({
      event_id: serviceEventId(event),
      event: event.event,
      org_id: event.org_id,
      created_at: this.#options.now(),
      payload: JSON.stringify(event.payload),
    }));
    for (const batch of pieces(records, eventBytes, EVENT_BATCH)) await this.#publishBatch(batch);
  }

  /** Resolves once every task is stored: in JUDGING, or in DEAD_LETTERS if it exceeds the maximum message size. */
  async enqueueTasks(tasks: readonly JudgingTask[]): Promise<void> {
    for (let at = 0; at < tasks.length; at += LIMITS.judging_publishes_max) {
      const some = tasks.slice(at, at + LIMITS.judging_publishes_max);
      await Promise.all(some.map((task) => this.#enqueueTask(task)));
    }
  }

  /** Resolves once every entry is stored in DEAD_LETTERS, or is logged and counted as lost because there is no room. */
  async deadLetter(entries: readonly DeadLetterEntry[]): Promise<void> {
    for (const some of pieces(entries, entryBytes, DEAD_LETTER_BATCH))
      await Promise.all(some.map((entry) => this.#deadLetterOne(entry)));
  }

  /**
   * Publishes a batch, in halves if the server rejects it as too large: the server's maximum may be
   * lower than that of EVENT_BATCH.
   */
  async #publishBatch(records: readonly ServiceEvent[]): Promise<void> {
    const data = serviceEventsCodec.encode({ events: [...records] });
    const msgID = createHash('sha256').update(data).digest('hex').slice(0, 32);
    try {
      await this.#publish(EVENTS_SUBJECT, data, serviceEventsCodec.fingerprint, msgID);
    } catch {
      const [only] = records;
      const half = Math.ceil(records.length / 2);
      if (records.length === 1 && only !== undefined) await this.#deadLetterOversized('events', only.event_id, data);
      else for (const some of [records.slice(0, half), records.slice(half)]) await this.#publishBatch(some);
      return;
    }
    for (const [name, group] of Map.groupBy(records, ({ event }) => event))
      this.#options.onPublished(name, group.length);
  }

  async #enqueueTask(task: JudgingTask): Promise<void> {
    const data = judgingTaskCodec.encode(task);
    try {
      await this.#publish(judgingSubject(task.kind), data, judgingTaskCodec.fingerprint, task.task_id);
    } catch {
      await this.#deadLetterOversized('judging', task.task_id, data);
    }
  }

  async #deadLetterOne({ dead, event, raw }: DeadLetterEntry): Promise<void> {
    const { step: stage, reason, detail } = dead;
    const { partition, log_seq, log_index } = dead.position;
    const letter: DeadLetter = {
      stage,
      reason,
      detail,
      partition,
      log_seq,
      log_index,
      died_at: this.#options.now(),
      org_id: event?.org_id ?? '',
      format: event?.format ?? '',
      event_hex: event?.event_hex ?? '',
      trace_id: event?.trace_id ?? '',
      received_at: event?.received_at ?? 0,
      body: event === null ? Buffer.from(raw ?? new Uint8Array()) : Buffer.from(event.body),
    };
    if (!(await this.#storeLetter(letter, `dead:${log_seq}:${log_index}`))) return;
    this.#logger.error(
      { stage, reason, partition, log_seq, log_index },
      'an event can never be stored; it is kept in DEAD_LETTERS',
    );
  }

  /** Dead-letters a message that is too large for its stream. */
  async #deadLetterOversized(stage: string, id: string, body: Uint8Array): Promise<void> {
    this.#logger.error({ stage, id, bytes: body.length }, 'a message is too large to be published');
    const letter = itemLetter({
      stage,
      reason: 'too_large',
      detail: `${id}: ${body.length} bytes exceed the maximum size of a message`,
      log_seq: 0,
      died_at: this.#options.now(),
      body: Buffer.from(body),
    });
    await this.#storeLetter(letter, `dead:${stage}:${id}`);
  }

  /** @returns false if DEAD_LETTERS has no room for the letter */
  async #storeLetter(letter: DeadLetter, msgID: string): Promise<boolean> {
    try {
      await this.#untilStored('a dead letter', () => this.#letters.put(letter, msgID));
      return true;
    } catch (error) {
      // The log line must not quote the body, which may hold personal data. The ingest log still
      // has the event at this position for a while.
      const { stage, reason, partition, log_seq, log_index, org_id, event_hex, body } = letter;
      const place = { stage, reason, partition, log_seq, log_index, org_id, event_hex, bytes: body.length };
      this.#logger.error({ err: error, ...place }, 'a dead letter is lost: DEAD_LETTERS has no room for it');
      this.#options.onLetterLost();
      return false;
    }
  }

  /** @throws the rejection of JetStream if the message is too large */
  #publish(subject: string, data: Uint8Array, fingerprint: string, msgID: string): Promise<void> {
    return this.#untilStored(subject, () => {
      const head = headers();
      head.set(FINGERPRINT_HEADER, fingerprint);
      return this.#log.js.publish(subject, data, { msgID, headers: head, timeout: PUBLISH_TIMEOUT_MS });
    });
  }

  /**
   * Retries `store` with backoff until it resolves.
   *
   * @throws what no retry can change: the message is too large, or DEAD_LETTERS is full
   */
  async #untilStored(what: string, store: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await store();
        return;
      } catch (error) {
        if (isTooLarge(error) || error instanceof NoRoomForLetter) throw error;
        this.#logger.warn({ err: error, what, attempt }, 'publishing failed; trying again');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
      }
    }
  }
}
