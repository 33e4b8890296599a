// Assembles the incidents of a worker: it reads EVENTS for traces that failed, counts them, and
// keeps their incidents. All workers share the queue. Guarantees: a message is acknowledged when
// its failures are counted and their incidents have advanced, so a crash repeats it. While
// ClickHouse is unavailable, the messages wait in EVENTS.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { AuditLog, recordSystemMutation } from '../../ops/exchange/audit_log.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { trackConnected } from '../../ops/platform/nats/connect.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_STREAM } from '../../schemas/streams.ts';
import { type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { BatchConsumer, type BatchConsumerOptions, PermanentFailure } from '../queues/batch_consumer.ts';
import type { IncidentEvent } from '../domain/incidents/incident_record.ts';
import type { Incidents } from '../jobs/incidents.ts';
import { publishJobEvent } from '../jobs/job_event.ts';
import { countFailures } from './counter.ts';
import { IncidentKeeper } from './keeper.ts';
import type { ReportedFailure } from './lookup.ts';
import { IncidentRecords } from './records.ts';
import { IncidentSettler } from './settler.ts';

/** Name of the durable consumer of EVENTS, its dead letters and its metrics. */
const QUEUE = 'incidents';
/** Maximum number of messages counted at once; each may name hundreds of traces. */
const BATCH_MAX = 32;
/**
 * Maximum bytes held, if each message were as large as the stream accepts; commonly they have some
 * kilobytes.
 */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
/**
 * Messages arrive with every landing of every worker; counted together they cost the store a tenth.
 */
const GATHER_MS = 500;
/**
 * Counting takes half a dozen statements however few the traces. On a busy store it gets a tenth of
 * the time, so that landings have the rest.
 */
const REST = { times: 9, maxMs: 5000 };
/**
 * Shortest rest for each failing trace of a batch, milliseconds. A statement for hundreds of traces
 * costs the store little more than one for ten, so where ten or more fail each second, the next
 * batch waits for REST.maxMs.
 */
const REST_MS_PER_TRACE = 100;
const ACK_PENDING_MAX = 256;
const RETRY = { firstMs: 250, maxMs: 5000 };
/** Time after which another worker counts the messages of one that died. */
const ACK_WAIT_MS = 10_000;
/** Longest wait until earlier events are counted, before quiet incidents are resolved. */
const CATCH_UP_MS_MAX = 30_000;
const LOOK_MS = 100;

const completed = z.object({ trace_id: z.string(), outcome: z.enum(['success', 'error', 'timeout']) });

export interface IncidentsOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  isLeader: () => boolean;
  observe: BatchConsumerOptions<unknown>['observe'];
  /** Called for each platform event that was published. */
  onPublished: (event: string) => void;
}

export interface IncidentsPart extends Incidents {
  start: () => void;
  /** Resolves when the batch under way has ended. */
  stop: () => Promise<void>;
}

/** Resolves when every incident that is not over has been loaded. */
export async function openIncidents({
  log,
  logger,
  clickhouse,
  now,
  isLeader,
  observe,
  onPublished,
}: IncidentsOptions): Promise<IncidentsPart> {
  const onProblem = (problem: string, cause: unknown): void => {
    logger.warn({ err: cause }, problem);
  };
  const records = await IncidentRecords.open(log, onProblem);
  const publish = async (event: IncidentEvent): Promise<void> => {
    await publishJobEvent(log, event);
    onPublished(event.event);
  };
  const settler = new IncidentSettler({ records, clickhouse, logger, isLeader, publish });
  const tracked = trackConnected(log.nc);
  const audit = new AuditLog(log, { now, connected: () => tracked.connected, onProblem });
  const record = recordSystemMutation.bind(null, audit);
  const keeper = new IncidentKeeper({ records, settler, clickhouse, logger, record, now });
  /** Failing traces of the newest batch. */
  let failing = 0;
  const queue = new BatchConsumer<{ events: ServiceEvent[] }>({
    log,
    logger,
    queue: QUEUE,
    stream: EVENTS_STREAM,
    codec: serviceEventsCodec,
    handle: async (batch) => {
      const reported = batch.flatMap(({ value }) => value.events.flatMap(failureOf));
      failing = reported.length;
      if (reported.length > 0) await keeper.advance(await countFailures({ clickhouse, logger, now }, reported));
    },
    deadLetter: createDeadLetterStore(log, now),
    observe,
    messagesMax: BATCH_MAX,
    bytesMax: HELD_BYTES_MAX,
    batchMax: BATCH_MAX,
    gatherMs: GATHER_MS,
    rest: { ...REST, minMs: () => failing * REST_MS_PER_TRACE },
    handlersMax: 1,
    ackPendingMax: ACK_PENDING_MAX,
    retry: RETRY,
    ackWaitMs: ACK_WAIT_MS,
    now,
  });
  return {
    resolveQuiet: async (at, signal) => {
      const behind = !(await caughtUp(log, signal));
      return behind
        ? { open: records.all().length, resolved: 0, behind }
        : { ...(await keeper.resolveQuiet(at, signal)), behind };
    },
    start: () => {
      settler.start();
      queue.start();
    },
    stop: async () => {
      await queue.stop();
      await settler.stop();
      await audit.flush();
      records.close();
    },
  };
}

function failureOf({ event, org_id, created_at, payload }: ServiceEvent): ReportedFailure[] {
  if (event !== 'trace.completed') return [];
  let parsed: z.output<typeof completed>;
  try {
    parsed = completed.parse(JSON.parse(payload));
  } catch (cause) {
    throw new PermanentFailure('a trace.completed event with an invalid payload', { cause });
  }
  return parsed.outcome === 'success' ? [] : [{ org_id, trace_id: parsed.trace_id, told_at: created_at }];
}

/**
 * Resolves with true when everything that EVENTS holds now has been counted, or with false when
 * that takes too long.
 */
async function caughtUp({ jsm }: Log, signal: AbortSignal): Promise<boolean> {
  const { state } = await jsm.streams.info(EVENTS_STREAM);
  const deadline = performance.now() + CATCH_UP_MS_MAX;
  for (;;) {
    const consumer = await jsm.consumers.info(EVENTS_STREAM, QUEUE).catch(() => null);
    if (consumer !== null) {
      if (consumer.ack_floor.stream_seq >= state.last_seq || consumer.num_pending + consumer.num_ack_pending === 0)
        return true;
    }
    if (performance.now() > deadline) return false;
    await sleep(LOOK_MS, undefined, { signal });
  }
}
