// Wires incidents into a worker: reads EVENTS for traces that failed, counts them, and keeps their incidents. All workers share
// the reading; a message is acknowledged when what it tells is counted and its incidents have moved on, so it is done again after
// a crash. While ClickHouse is away the messages wait in EVENTS.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { Logger } from '../../ops/log.ts';
import { EVENTS_STREAM, type Log } from '../../ops/streams.ts';
import { WatchedBucket } from '../../ops/watched_bucket.ts';
import { type ServiceEvent, serviceEventsCodec } from '../../schemas/codec.ts';
import { parseIncident } from '../../schemas/records/incident.ts';
import type { ClickHouse } from '../../sql/client.ts';
import { createBurial } from '../delivery/dead_items.ts';
import { NeverPossible, WorkQueue, type WorkQueueOptions } from '../delivery/work_queue.ts';
import type { Incidents } from '../jobs/incidents.ts';
import { tellEvent } from '../jobs/tell.ts';
import { countFailures, type ToldFailure } from './counter.ts';
import { IncidentKeeper } from './keeper.ts';

/** Names the consumer of EVENTS, its dead letters and its metrics. */
const QUEUE = 'incidents';
/** Messages that are counted at once; each may tell of hundreds of traces. */
const BATCH_MAX = 32;
/** A message is commonly some kilobytes; the bound holds were each as large as the stream takes. */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
/** Messages come with every landing of every worker; together they cost the store a tenth. */
const GATHER_MS = 500;
const UNFINISHED_MAX = 256;
const RETRY = { firstMs: 250, maxMs: 5000 };
const ACK_WAIT_MS = 30_000;
/** How long a look at what is over waits until what was told before it is counted. */
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
  observe: WorkQueueOptions<unknown>['observe'];
  /** An event of the catalog went out. */
  onTold: (event: string) => void;
}

export interface IncidentsPart extends Incidents {
  start: () => void;
  /** Resolves when what is in hand has ended. */
  stop: () => Promise<void>;
}

/** Resolves when every incident that is not over has been loaded. */
export async function openIncidents({ log, logger, clickhouse, now, isLeader, observe, onTold }: IncidentsOptions): Promise<IncidentsPart> {
  const kv = await log.bucket('incidents');
  const onProblem = (problem: string, cause: unknown): void => {
    logger.warn({ err: cause }, problem);
  };
  const bucket = await WatchedBucket.open(log.nc, kv, { name: 'incidents', parse: parseIncident, onProblem });
  const keeper = new IncidentKeeper({
    bucket,
    kv,
    clickhouse,
    logger,
    now,
    isLeader,
    tell: async (event) => {
      await tellEvent(log, event);
      onTold(event.event);
    },
  });
  const queue = new WorkQueue<{ events: ServiceEvent[] }>({
    log,
    logger,
    queue: QUEUE,
    stream: EVENTS_STREAM,
    codec: serviceEventsCodec,
    handle: async (batch) => {
      const told = batch.flatMap(({ value }) => value.events.flatMap(failureOf));
      if (told.length > 0) await keeper.advance(await countFailures({ clickhouse, logger, now }, told));
    },
    bury: createBurial(log, now),
    observe,
    messagesMax: BATCH_MAX,
    bytesMax: HELD_BYTES_MAX,
    batchMax: BATCH_MAX,
    gatherMs: GATHER_MS,
    handlersMax: 1,
    unfinishedMax: UNFINISHED_MAX,
    retry: RETRY,
    ackWaitMs: ACK_WAIT_MS,
    now,
  });
  return {
    resolveQuiet: async (at, signal) => {
      await caughtUp(log, signal);
      return keeper.resolveQuiet(at, signal);
    },
    start: () => {
      keeper.start();
      queue.start();
    },
    stop: async () => {
      await queue.stop();
      await keeper.stop();
      bucket.close();
    },
  };
}

function failureOf({ event, org_id, created_at, payload }: ServiceEvent): ToldFailure[] {
  if (event !== 'trace.completed') return [];
  let parsed: z.output<typeof completed>;
  try {
    parsed = completed.parse(JSON.parse(payload));
  } catch (cause) {
    throw new NeverPossible('a trace.completed that is none', { cause });
  }
  return parsed.outcome === 'success' ? [] : [{ org_id, trace_id: parsed.trace_id, told_at: created_at }];
}

/** Resolves when everything that EVENTS holds now has been counted. @throws Error when that takes too long */
async function caughtUp({ jsm }: Log, signal: AbortSignal): Promise<void> {
  const { state } = await jsm.streams.info(EVENTS_STREAM);
  const deadline = performance.now() + CATCH_UP_MS_MAX;
  for (;;) {
    const consumer = await jsm.consumers.info(EVENTS_STREAM, QUEUE).catch(() => null);
    if (consumer !== null) {
      if (consumer.ack_floor.stream_seq >= state.last_seq || consumer.num_pending + consumer.num_ack_pending === 0) return;
    }
    if (performance.now() > deadline) throw new Error('traces that failed wait to be counted');
    await sleep(LOOK_MS, undefined, { signal });
  }
}
