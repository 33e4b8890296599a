// Wiring of the data plane of a worker: everything between the ingest log and the rows in the
// store. The partitions of each shard have a plane of their own (shard_plane.ts).
//
// Each part is built after the parts that it depends on. Nothing runs before `start`.
import * as metrics from '../../ops/platform/metrics.ts';
import { type Budgets, openBudgets } from '../budgets/open.ts';
import { onTracesDeleted } from '../retention/deleted_traces.ts';
import type { RetentionPolicies } from '../settings/retention_policies.ts';
import type { LogReaders } from '../worker/log_readers.ts';
import { Ownership } from '../worker/ownership.ts';
import type { PartitionHolder } from '../worker/partition_holder.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { Worker } from '../worker/worker.ts';
import type { MetricsServer } from './metrics_server.ts';
import { countPublished } from './parts.ts';
import type { Platform } from './platform.ts';
import type { Settings } from './settings.ts';
import { openShardPlane, type ShardPlane } from './shard_plane.ts';
import { ShardWork } from './shard_work.ts';
import type { StoreUp } from './store.ts';

export interface DataPlaneParts {
  platform: Platform;
  settings: Settings;
  /** Retention of each organization's texts, which is stamped on every text that lands. */
  retention: RetentionPolicies;
  storeUp: StoreUp;
  metricsServer: Pick<MetricsServer, 'url' | 'isReady'>;
}

export interface DataPlane {
  /** States of the owned partitions, of all shards. */
  states: () => PartitionState[];
  ownership: Ownership;
  readers: readonly LogReaders[];
  /** Asks of other processes, which go to the plane of the partition. */
  worker: Pick<Worker, 'forgetTraces' | 'forgetEvents' | 'forgetOrg'>;
  budgets: Budgets;
  /**
   * Starts the worker, claims partitions and starts to move texts.
   *
   * @param onFailure called once if the worker ends with an error that no retry resolves
   */
  start: (onFailure: (error: unknown) => void) => Promise<void>;
  /** Lands what was read, gives up the partitions, and resolves when nothing runs any more. */
  stop: () => Promise<void>;
}

export async function openDataPlane(parts: DataPlaneParts): Promise<DataPlane> {
  const { platform, settings, storeUp } = parts;
  const { log, logger, clickhouse } = platform;
  const ownership = await openOwnership(parts);
  const budgets = await openBudgets({
    log,
    logger,
    clickhouse,
    policies: settings.policies,
    isLeader: () => ownership.isLeader,
    records: settings.budgetRecords,
    onPublished: countPublished,
  });
  const texts = waitingTexts();
  const planes = storeUp.shards.map((up) => openShardPlane({ ...parts, up, ownership, budgets, texts }));
  const planeOf = (partition: number): ShardPlane => {
    const plane = planes[storeUp.shards.findIndex(({ shard }) => shard.has(partition))];
    if (plane === undefined) throw new Error(`no shard has the partition ${partition}`);
    return plane;
  };
  // A partition that has moved is claimed again under another epoch, so that its new plane takes it over from its
  // checkpoint, as if another worker had owned it, and rows on their way to its former shard are fenced off.
  const renew = (moved: readonly number[]): void => {
    for (const partition of moved) {
      ownership.renew(partition);
      for (const { worker } of planes) worker.lose(partition);
    }
  };
  const each = async (run: (plane: ShardPlane) => Promise<void>): Promise<void> => {
    await Promise.all(planes.map(run));
  };
  return {
    states: () => planes.flatMap(({ states }) => [...states.values()]),
    ownership,
    readers: planes.map(({ reader }) => reader),
    worker: {
      forgetTraces: (partition, ...what) => planeOf(partition).worker.forgetTraces(partition, ...what),
      forgetEvents: (partition, ...what) => planeOf(partition).worker.forgetEvents(partition, ...what),
      forgetOrg: (partition, org_id) => planeOf(partition).worker.forgetOrg(partition, org_id),
    },
    budgets,
    start: async (onFailure) => {
      for (const plane of planes) plane.start(onFailure);
      onTracesDeleted(log.nc, () => {
        for (const { worker } of planes) worker.forgetComplete();
      });
      log.streams.onChange(() => {
        for (const { worker } of planes) worker.streamsChanged();
      });
      platform.places.onChange(renew);
      await ownership.start(createHolder(planes, planeOf));
    },
    stop: async () => {
      // A move of texts that is under way may take seconds; partitions are released meanwhile.
      const moves = each((plane) => plane.stopMoves());
      // NATS or the store may be unavailable. The next owner of the partitions then starts from the
      // last checkpoint.
      const released = ownership.stop().catch((error: unknown) => {
        logger.warn(
          { err: error },
          'partitions could not be released; other workers take them over when the lease of this worker expires',
        );
      });
      await Promise.all([moves, released]);
      await each((plane) => plane.worker.stop());
      await budgets.stop();
    },
  };
}

/** Adds up the texts that wait for their move in the shards. */
function waitingTexts() {
  const waiting = new Map<number, number>();
  return {
    wait: (shard: number, texts: number): void => {
      waiting.set(shard, texts);
      metrics.pipelineTextsWaiting.set([...waiting.values()].reduce((sum, count) => sum + count, 0));
    },
  };
}

async function openOwnership({ platform, storeUp, metricsServer }: DataPlaneParts): Promise<Ownership> {
  const { log, logger, workerId, partitions, store } = platform;
  return new Ownership({
    nc: log.nc,
    kv: await log.bucket('partitions'),
    workerId,
    partitions,
    metricsUrl: metricsServer.url,
    // Workers own partitions of few of these. Where there are more shards than streams, a landing for each
    // shard costs more than a reader for each stream.
    streamOf: (partition) => {
      const { open } = log.streams.layout;
      return store.shards.length > open.length
        ? store.shards.findIndex((shard) => shard.has(partition))
        : open.findIndex((stream) => stream.has(partition));
    },
    isUp: () => metricsServer.isReady(),
    epochBase: storeUp.epochBase,
    places: platform.places,
    logger,
  });
}

/**
 * Returns the holder that gives each partition to the plane of its shard. A shard that is away delays the
 * partitions of others by a moment at most.
 */
function createHolder(planes: readonly ShardPlane[], planeOf: (partition: number) => ShardPlane): PartitionHolder {
  const work = new ShardWork<ShardPlane>(planes.length === 1);
  return {
    acquire: async (records) => {
      const byPlane = Map.groupBy(records, ({ partition }) => planeOf(partition));
      const up = await work.run(byPlane, (plane, of) => plane.acquire(of));
      return up.map(({ partition }) => partition);
    },
    release: (partitions, isLast) =>
      work.run(Map.groupBy(partitions, planeOf), (plane, of) => plane.worker.release(of), isLast),
    lose: (partition) => {
      planeOf(partition).worker.lose(partition);
    },
  };
}
