// Wiring of what a worker does for one shard: it reads the shard's partitions from the log, lands their
// rows, and moves their texts. Shards share nothing, so one that is away holds no other one up.
import * as metrics from '../../ops/platform/metrics.ts';
import type { Budgets } from '../budgets/open.ts';
import { AgentActivity } from '../landing/agent_activity.ts';
import { FencesOfShards, HistoryOfShards, type LookedShard, RowsOfShards } from '../worker/earlier_shards.ts';
import { Lander } from '../landing/lander.ts';
import { ClickHouseOlderTextStore } from '../landing/older_text_store.ts';
import { OlderTexts } from '../landing/older_texts.ts';
import { PlaceSweep } from '../landing/place_sweep.ts';
import { ReplacedSpans } from '../landing/replaced_spans.ts';
import { TextMover } from '../landing/text_mover.ts';
import { ClickHouseTextStore } from '../landing/text_store.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Shard } from '../../sql/client/shards.ts';
import type { PlacedRecord } from '../stages/match.ts';
import { LogReaders } from '../worker/log_readers.ts';
import type { Ownership } from '../worker/ownership.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import { Publisher } from '../worker/publish.ts';
import { takeOver } from '../worker/takeover.ts';
import { Worker } from '../worker/worker.ts';
import type { DataPlaneParts } from './data_plane.ts';
import { countPublished, untilDone } from './parts.ts';
import type { Platform } from './platform.ts';
import { openPreparation, usesTailSampling, windowMsOf } from './preparation.ts';
import type { ShardUp } from './store.ts';

export interface ShardPlane {
  states: ReadonlyMap<number, PartitionState>;
  worker: Worker;
  reader: LogReaders;
  /** Brings partitions up; see takeOver. Waits for a shard that was never there since the worker started. */
  acquire: (records: readonly PartitionRecord[]) => Promise<void>;
  /** Starts the worker and the mover of texts. */
  start: (onFailure: (error: unknown) => void) => void;
  /** Stops what does not belong to partitions. */
  stopMoves: () => Promise<void>;
}

export interface ShardParts extends DataPlaneParts {
  up: ShardUp;
  ownership: Ownership;
  budgets: Budgets;
  /** Takes how many texts of a shard wait for their move. */
  texts: { wait: (shard: number, texts: number) => void };
}

export function openShardPlane(parts: ShardParts): ShardPlane {
  const { platform, storeUp, up, ownership, budgets } = parts;
  const { log, logger } = platform;
  const { clickhouse } = up.shard;
  const rows = rowsOf(parts);
  const states = new Map<number, PartitionState>();
  const sharers = storeUp.shards.length;
  const reader = new LogReaders({ js: log.js, logger, layout: () => log.streams.layout, sharers });
  const activity = new AgentActivity((heard) => up.store.writeActivity(heard));
  const replaced = new ReplacedSpans({
    clickhouse,
    earlier: () => earlierOf(platform, up.shard),
    logger,
    windowMs: windowMsOf(platform),
    now: () => Date.now(),
  });
  const worker = new Worker({
    states,
    reader,
    prepare: openPreparation(parts, rows, states, reader),
    lander: createLander(parts),
    ownership,
    publisher: createPublisher(platform),
    logger,
    reportLanded: (prepared) => {
      activity.note(prepared.usage);
      budgets.reportLanded(prepared);
      if (prepared.replaces) replaced.wake();
    },
    sync: async () => {
      await activity.write();
      await storeUp.sync();
    },
  });
  const takeover = takeoverOf(parts, rows, states, worker);
  const mover = createTextMover(parts);
  return {
    states,
    worker,
    reader,
    acquire: async (records) => {
      await up.ready;
      await untilDone(logger, 'bringing partitions up', () => takeOver(takeover, records));
      replaced.takeOver();
    },
    start: (onFailure) => {
      worker.start(onFailure);
      mover.start();
    },
    stopMoves: async () => {
      await mover.stop();
      await replaced.stop();
    },
  };
}

function createPublisher({ log, logger }: Platform): Publisher {
  return new Publisher(log, logger, {
    now: () => Date.now(),
    onPublished: countPublished,
    onLetterLost: () => {
      metrics.deadLettersLostTotal.inc();
    },
  });
}

function createLander({ platform, up, ownership }: ShardParts): Lander {
  const { logger, workerId } = platform;
  const { shard, store } = up;
  return new Lander({
    store,
    workerId,
    logger,
    owned: () => ownership.owned.filter(([partition]) => shard.has(partition)),
    onFenced: (partition) => {
      logger.warn({ partition }, 'the store has a newer owner of this partition');
      ownership.fenced(partition);
    },
    observe: (table, rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table }, rows);
    },
  });
}

function createTextMover({ platform, storeUp, up, ownership, texts }: ShardParts): TextMover {
  const { logger, workerId } = platform;
  const { shard, fences } = up;
  const older = new ClickHouseOlderTextStore(shard.clickhouse, fences, workerId);
  return new TextMover({
    store: new ClickHouseTextStore(shard.clickhouse, fences),
    workerId,
    logger,
    background: [new PlaceSweep(older, logger), new OlderTexts({ store: older, workerId, logger, sync: storeUp.sync })],
    isLeader: () => ownership.isLeader,
    sync: storeUp.sync,
    observe: (waiting, moved, seconds) => {
      texts.wait(shard.index, waiting);
      if (moved === 0) return;
      metrics.clickhouseInsertSeconds.observe({ table: 'span_texts' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'span_texts' }, moved);
    },
  });
}

/** Returns the shards in which partitions of a shard were before. */
function earlierOf({ store, partitions }: Platform, shard: Shard): ClickHouse[] {
  const moved = Array.from({ length: partitions }, (_, partition) =>
    shard.has(partition) ? store.before(partition) : [],
  );
  return [...new Set(moved.flat())].map(({ clickhouse }) => clickhouse);
}

/** The shard of a plane, and those in which its partitions were before. */
function lookedOf({ storeUp, up, platform }: ShardParts) {
  const looked = new Map(
    storeUp.shards.map(({ shard, fences, store }): [Shard, LookedShard] => [
      shard,
      { clickhouse: shard.clickhouse, fences, store },
    ]),
  );
  const own = looked.get(up.shard);
  if (own === undefined) throw new Error('the shard of a plane is none of the store');
  const before = (partition: number): LookedShard[] =>
    platform.store.before(partition).flatMap((shard) => looked.get(shard) ?? []);
  return { own, before };
}

function rowsOf(parts: ShardParts): RowsOfShards {
  return new RowsOfShards({
    ...lookedOf(parts),
    epochOf: (partition) => parts.ownership.epochOf(partition),
    workerId: parts.platform.workerId,
  });
}

function takeoverOf(
  parts: ShardParts,
  rows: RowsOfShards,
  states: ReadonlyMap<number, PartitionState>,
  worker: Worker,
): Parameters<typeof takeOver>[0] {
  const { platform, settings, storeUp, ownership } = parts;
  const { env, partitions } = platform;
  const looked = lookedOf(parts);
  return {
    ownership,
    states,
    worker,
    fences: new FencesOfShards(looked),
    store: new HistoryOfShards(looked, rows),
    history: { logBase: storeUp.logBase, windowMs: windowMsOf(platform), tail: usesTailSampling(platform) },
    partitions,
    graceMs: env.SERVICE_TRACE_GRACE_MS,
    idleMs: env.SERVICE_TRACE_IDLE_MS,
    findCalls: (places: readonly PlacedRecord[]) => rows.findCalls(places),
    isJudged: (org_id: string) => settings.judges.of(org_id) !== null,
  };
}
