// What the pipeline publishes: platform events to EVENTS, casualties to DEAD_LETTERS. Both wait until JetStream has
// stored them, for as long as it takes: the checkpoint does not move before. Both carry ids that stay the same when a
// crash makes them go out twice.
import { createHash } from 'node:crypto';
import { headers } from '@nats-io/transport-node';
import type { Logger } from '../../ops/log.ts';
import type { Log } from '../../ops/nats/open_log.ts';
import { deadLetterSubject, EVENTS_SUBJECT, judgingSubject } from '../../ops/streams.ts';
import {
  deadLetterCodec,
  FINGERPRINT_HEADER,
  judgingTaskCodec,
  type JudgingTask,
  serviceEventsCodec,
  type ServiceEvent,
} from '../../schemas/codec.ts';
import { LIMITS } from '../topology.ts';
import { backoffMs } from './backoff.ts';
import type { Casualty } from './prepare.ts';
import type { BookEvent } from './trace_book.ts';

const PUBLISH_TIMEOUT_MS = 3000;
/** Dead letters that are on their way at a time, and their bytes: everybody's landing waits until all of them are stored. */
const BURIALS_MAX = 64;
const BURIAL_BYTES_MAX = 16 * 1024 * 1024;

export interface Publisher {
  tell(events: readonly BookEvent[]): Promise<void>;
  bury(casualties: readonly Casualty[]): Promise<void>;
  hand(tasks: readonly JudgingTask[]): Promise<void>;
}

/** As many as may be on their way together; at least one. */
function* burials(casualties: readonly Casualty[]): Generator<Casualty[]> {
  let [some, bytes]: [Casualty[], number] = [[], 0];
  for (const one of casualties) {
    const size = one.event?.body.length ?? one.raw?.length ?? 0;
    if (some.length === BURIALS_MAX || (some.length > 0 && bytes + size > BURIAL_BYTES_MAX)) {
      yield some;
      [some, bytes] = [[], 0];
    }
    some.push(one);
    bytes += size;
  }
  if (some.length > 0) yield some;
}

/** evt_ + hex16 over what the event is: told twice, it has the same id. */
export function serviceEventId({ event, org_id, trace_id, subject }: BookEvent): string {
  const parts = [event, org_id, trace_id, ...(subject === undefined ? [] : [subject])];
  return `evt_${createHash('sha256').update(parts.join('\n')).digest('hex').slice(0, 16)}`;
}

export function createPublisher(
  log: Log,
  logger: Logger,
  options: { now(): number; onTold(event: string, count: number): void },
): Publisher {
  async function publish(subject: string, data: Uint8Array, fingerprint: string, msgID: string): Promise<void> {
    for (let attempt = 0; ; attempt += 1) {
      try {
        const head = headers();
        head.set(FINGERPRINT_HEADER, fingerprint);
        await log.js.publish(subject, data, { msgID, headers: head, timeout: PUBLISH_TIMEOUT_MS });
        return;
      } catch (error) {
        logger.warn({ err: error, subject, attempt }, 'publishing failed; trying again');
        await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
      }
    }
  }
  return {
    async tell(events) {
      for (let at = 0; at < events.length; at += LIMITS.service_events_batch_max) {
        const batch = events.slice(at, at + LIMITS.service_events_batch_max);
        const records = batch.map((event): ServiceEvent => ({
          event_id: serviceEventId(event),
          event: event.event,
          org_id: event.org_id,
          created_at: options.now(),
          payload: JSON.stringify(event.payload),
        }));
        const data = serviceEventsCodec.encode({ events: records });
        await publish(EVENTS_SUBJECT, data, serviceEventsCodec.fingerprint, createHash('sha256').update(data).digest('hex').slice(0, 32));
        for (const [name, group] of Map.groupBy(records, ({ event }) => event)) options.onTold(name, group.length);
      }
    },
    async hand(tasks) {
      for (let at = 0; at < tasks.length; at += LIMITS.judging_publishes_max) {
        const some = tasks.slice(at, at + LIMITS.judging_publishes_max);
        await Promise.all(
          some.map((task) => publish(judgingSubject(task.kind), judgingTaskCodec.encode(task), judgingTaskCodec.fingerprint, task.task_id)),
        );
      }
    },
    async bury(casualties) {
      const bury = async ({ dead, event, raw }: Casualty): Promise<void> => {
        const { partition, log_seq, log_index } = dead.position;
        const data = deadLetterCodec.encode({
          stage: dead.stage,
          reason: dead.reason,
          detail: dead.detail.slice(0, 4000),
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
        });
        await publish(deadLetterSubject(dead.stage), data, deadLetterCodec.fingerprint, `dead:${String(log_seq)}:${String(log_index)}`);
        logger.error(
          { stage: dead.stage, reason: dead.reason, partition, log_seq, log_index },
          'an event can never land; it is kept in DEAD_LETTERS',
        );
      };
      for (const some of burials(casualties)) await Promise.all(some.map(bury));
    },
  };
}
