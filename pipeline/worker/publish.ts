// What the pipeline publishes: platform events to EVENTS, tasks to JUDGING, casualties to DEAD_LETTERS. All wait until JetStream has
// stored them, for as long as it takes: the checkpoint does not move before. All carry ids that stay the same when a crash makes
// them go out twice. Waited is only for what waiting can help: a message that is too large is cut in two, or becomes a letter; a
// letter for which DEAD_LETTERS has no room is told in the log of this process and counted, so that one org's holds up nobody.
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
import { LIMITS } from '../topology.ts';
import { backoffMs } from '../queues/backoff.ts';
import { DeadLetters, itemLetter, NoRoomForLetter } from '../queues/dead_letters.ts';
import type { Casualty } from './prepare.ts';
import type { BookEvent } from '../traces/open_traces.ts';

const PUBLISH_TIMEOUT_MS = 3000;
/** Dead letters that are on their way at a time, and their bytes: everybody's landing waits until all of them are stored. */
const BURIALS = { count: 64, bytes: 16 * 1024 * 1024 };
const EVENT_BATCH = { count: LIMITS.service_events_batch_max, bytes: LIMITS.service_events_bytes_max };
/** Numbers and lengths of an event in its message. */
const EVENT_FRAME_BYTES = 32;

export interface Publisher {
  tell(events: readonly BookEvent[]): Promise<void>;
  bury(casualties: readonly Casualty[]): Promise<void>;
  hand(tasks: readonly JudgingTask[]): Promise<void>;
}

const casualtyBytes = ({ event, raw }: Casualty): number => event?.body.length ?? raw?.length ?? 0;

const eventBytes = ({ event_id, event, org_id, payload }: ServiceEvent): number =>
  Buffer.byteLength(payload) +
  Buffer.byteLength(org_id) +
  Buffer.byteLength(event) +
  event_id.length +
  EVENT_FRAME_BYTES;

/** evt_ + hex16 over what the event is: told twice, it has the same id. */
export function serviceEventId({ event, org_id, trace_id, subject }: BookEvent): string {
  const parts = [event, org_id, trace_id, ...(subject === undefined ? [] : [subject])];
  return `evt_${hex16(parts.join('\n'))}`;
}

export interface PublisherOptions {
  now(): number;
  onTold(event: string, count: number): void;
  /** Told of letters that could not be kept. */
  onLetterLost(): void;
}

export function createPublisher(log: Log, logger: Logger, options: PublisherOptions): Publisher {
  const letters = new DeadLetters(log);

  /** Tries until it works. @throws what no further try can change */
  async function untilStored(what: string, store: () => Promise<unknown>): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        await store();
        return;
      } catch (error) {
        if (isTooLarge(error) || error instanceof NoRoomForLetter) throw error;
        logger.warn({ err: error, what, attempt }, 'publishing failed; trying again');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
      }
    }
  }

  /** @throws where it is too large */
  function publish(subject: string, data: Uint8Array, fingerprint: string, msgID: string): Promise<void> {
    return untilStored(subject, () => {
      const head = headers();
      head.set(FINGERPRINT_HEADER, fingerprint);
      return log.js.publish(subject, data, { msgID, headers: head, timeout: PUBLISH_TIMEOUT_MS });
    });
  }

  /** @returns whether there was room for it */
  async function keep(letter: DeadLetter, msgID: string): Promise<boolean> {
    try {
      await untilStored('a dead letter', () => letters.put(letter, msgID));
      return true;
    } catch (error) {
      // Nothing of the event itself is said here: it is personal, as far as anybody knows. The log has it at this place for a while.
      const { stage, reason, partition, log_seq, log_index, org_id, event_hex, body } = letter;
      const place = { stage, reason, partition, log_seq, log_index, org_id, event_hex, bytes: body.length };
      logger.error({ err: error, ...place }, 'a dead letter is lost: there is no room for it');
      options.onLetterLost();
      return false;
    }
  }

  /** Keeps what is too large for its stream as a letter. */
  async function giveUp(stage: string, id: string, body: Uint8Array): Promise<void> {
    const detail = `${id}: ${String(body.length)} bytes are more than a message takes`;
    logger.error({ stage, id, bytes: body.length }, 'a message is too large to be published');
    const letter = itemLetter({
      stage,
      reason: 'too_large',
      detail,
      log_seq: 0,
      died_at: options.now(),
      body: Buffer.from(body),
    });
    await keep(letter, `dead:${stage}:${id}`);
  }

  /** Cut in two as often as it takes: by the bounds of a batch it is not too large, but the server's may be less. */
  async function tellBatch(records: readonly ServiceEvent[]): Promise<void> {
    const data = serviceEventsCodec.encode({ events: [...records] });
    const msgID = createHash('sha256').update(data).digest('hex').slice(0, 32);
    try {
      await publish(EVENTS_SUBJECT, data, serviceEventsCodec.fingerprint, msgID);
    } catch {
      const [only] = records;
      const half = Math.ceil(records.length / 2);
      if (records.length === 1 && only !== undefined) await giveUp('events', only.event_id, data);
      else for (const some of [records.slice(0, half), records.slice(half)]) await tellBatch(some);
      return;
    }
    for (const [name, group] of Map.groupBy(records, ({ event }) => event)) options.onTold(name, group.length);
  }

  async function handOne(task: JudgingTask): Promise<void> {
    const data = judgingTaskCodec.encode(task);
    try {
      await publish(judgingSubject(task.kind), data, judgingTaskCodec.fingerprint, task.task_id);
    } catch {
      await giveUp('judging', task.task_id, data);
    }
  }

  async function buryOne({ dead, event, raw }: Casualty): Promise<void> {
    const { partition, log_seq, log_index } = dead.position;
    const letter: DeadLetter = {
      stage: dead.stage,
      reason: dead.reason,
      detail: dead.detail,
      partition,
      log_seq,
      log_index,
      died_at: options.now(),
      org_id: event?.org_id ?? '',
      format: event?.format ?? '',
      event_hex: event?.event_hex ?? '',
      trace_id: event?.trace_id ?? '',
      received_at: event?.received_at ?? 0,
      body: event === null ? Buffer.from(raw ?? new Uint8Array()) : Buffer.from(event.body),
    };
    if (!(await keep(letter, `dead:${String(log_seq)}:${String(log_index)}`))) return;
    const { stage, reason } = dead;
    logger.error(
      { stage, reason, partition, log_seq, log_index },
      'an event can never land; it is kept in DEAD_LETTERS',
    );
  }

  return {
    async tell(events) {
      const records = events.values().map((event): ServiceEvent => ({
        event_id: serviceEventId(event),
        event: event.event,
        org_id: event.org_id,
        created_at: options.now(),
        payload: JSON.stringify(event.payload),
      }));
      for (const batch of pieces(records, eventBytes, EVENT_BATCH)) await tellBatch(batch);
    },
    async hand(tasks) {
      for (let at = 0; at < tasks.length; at += LIMITS.judging_publishes_max) {
        const some = tasks.slice(at, at + LIMITS.judging_publishes_max);
        await Promise.all(some.map(handOne));
      }
    },
    async bury(casualties) {
      for (const some of pieces(casualties, casualtyBytes, BURIALS)) await Promise.all(some.map(buryOne));
    },
  };
}
