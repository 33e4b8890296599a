// Wiring of the store: brings the schema of each shard up to date, finds the positions and epochs that
// the store already knows, and chooses how rows are made durable.
import { createSyncer, type Syncer } from '../../ops/platform/clickhouse/durability.ts';
import { spreadParts } from '../../ops/platform/clickhouse/spread.ts';
import { die } from '../../ops/platform/leave.ts';
import { LOG_PLACE_KEY, settle } from '../../ops/platform/nats/open_log.ts';
import { ensureAnalyst } from '../../sql/analysts/analyst.ts';
import { migrateShard, MixedSchema } from '../../sql/client/migrate_store.ts';
import type { Shard, Store } from '../../sql/client/shards.ts';
import { Fences } from '../landing/fences.ts';
import { ClickHouseLandingStore } from '../landing/landing_store.ts';
import { untilDone, type WorkerParts } from './parts.ts';

/** A shard as a worker lands in it. */
export interface ShardUp {
  shard: Shard;
  fences: Fences;
  store: ClickHouseLandingStore;
  /** Resolves once the schema of the shard is the newest and its rows become durable. */
  ready: Promise<void>;
}

export interface StoreUp {
  shards: readonly ShardUp[];
  /**
   * Offset that turns positions in the log into log positions of the store. It is above 0 if the
   * store has rows of a former log.
   */
  logBase: number;
  /** Epochs of partition owners start above this value. */
  epochBase: number;
  /** Resolves once everything that landed before the call would survive power loss. */
  sync: () => Promise<void>;
}

export interface StoreParts extends WorkerParts {
  store: Store;
}

/** Resolves once a shard of the store is ready, however long all are unavailable. The others follow. */
export async function bringUpStore(parts: StoreParts): Promise<StoreUp> {
  const { logger, log, store, workerId, env } = parts;
  const { SERVICE_CLICKHOUSE_DATA_DIR: dir } = env;
  // The folder exists once the engine answers.
  let syncing: Promise<Syncer | null> | undefined;
  const syncerOf = () => (syncing ??= dir === undefined ? Promise.resolve(null) : createSyncer(dir));
  const shards = store.shards.map((shard): ShardUp => {
    const fences = new Fences(shard.clickhouse, workerId, shard.index);
    const rows = new ClickHouseLandingStore(shard.clickhouse, fences);
    const what = shard.name === '' ? 'ClickHouse' : `the shard ${shard.name} of ClickHouse`;
    const ready = untilDone(logger, `waiting for ${what}`, () => newestSchema(parts, shard)).then(() =>
      untilDone(logger, `choosing durability of ${what}`, async () => rows.syncInserts((await syncerOf()) === null)),
    );
    return { shard, fences, store: rows, ready };
  });
  await Promise.race(shards.map(({ ready }) => ready));
  const { base, epochs } = await untilDone(logger, 'positioning the log', () =>
    settle<{ base: number; epochs?: number }>(log, LOG_PLACE_KEY, async () => ({
      base: Math.max(...(await Promise.all(shards.map(({ store: rows }) => rows.newestPosition())))),
      epochs: Math.max(...(await Promise.all(shards.map(({ fences }) => fences.newestEpoch())))),
    })),
  );
  if (dir !== undefined && (await spreadParts(dir)))
    logger.debug({ dir }, 'the file system has no journal; parts are spread over it');
  return {
    shards,
    logBase: base,
    epochBase: epochs ?? 0,
    sync: async () => (await syncerOf())?.sync(),
  };
}

/** Applies migrations, and creates the user of analysts if the server manages its users by SQL. */
async function newestSchema({ env, store, logger }: StoreParts, shard: Shard): Promise<void> {
  const { SERVICE_CLICKHOUSE_CLUSTER: cluster, SERVICE_CLICKHOUSE_ANALYST_PASSWORD: password } = env;
  try {
    await migrateShard(store, shard, cluster);
  } catch (error) {
    if (!(error instanceof MixedSchema)) throw error;
    logger.fatal({ err: error }, 'the shards of the store have different schemas');
    die();
  }
  const refusal =
    password === undefined
      ? null
      : await ensureAnalyst(shard.clickhouse, password, { cluster, isShard: store.cluster !== null });
  if (refusal !== null) logger.debug({ reason: refusal }, 'the store manages the user analyst by itself');
}
