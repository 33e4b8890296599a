// Wiring of the store: brings the schema up to date, finds the positions and epochs that the store
// already knows, and chooses how rows are made durable.
import { createSyncer } from '../../ops/platform/clickhouse/durability.ts';
import { spreadParts } from '../../ops/platform/clickhouse/spread.ts';
import { LOG_PLACE_KEY, settle } from '../../ops/platform/nats/open_log.ts';
import { ensureAnalyst } from '../../sql/analysts/analyst.ts';
import { migrate } from '../../sql/client/migrate.ts';
import { Fences } from '../landing/fences.ts';
import { ClickHouseLandingStore } from '../landing/landing_store.ts';
import { untilDone, type WorkerParts } from './parts.ts';

export interface StoreUp {
  fences: Fences;
  store: ClickHouseLandingStore;
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

/** Resolves once the store is ready, however long it is unavailable. */
export async function bringUpStore(parts: WorkerParts): Promise<StoreUp> {
  const { logger, log, clickhouse, workerId } = parts;
  const fences = new Fences(clickhouse, workerId);
  const store = new ClickHouseLandingStore(clickhouse, fences);
  await untilDone(logger, 'waiting for ClickHouse', () => newestSchema(parts));
  const { base, epochs } = await untilDone(logger, 'positioning the log', () =>
    settle<{ base: number; epochs?: number }>(log, LOG_PLACE_KEY, async () => ({
      base: await store.newestPosition(),
      epochs: await fences.newestEpoch(),
    })),
  );
  const sync = await untilDone(logger, 'choosing durability', () => chooseDurability(parts, store));
  const { SERVICE_CLICKHOUSE_DATA_DIR: dir } = parts.env;
  if (dir !== undefined && (await spreadParts(dir)))
    logger.debug({ dir }, 'the file system has no journal; parts are spread over it');
  return { fences, store, logBase: base, epochBase: epochs ?? 0, sync };
}

/** Applies migrations, and creates the user of analysts if the server manages its users by SQL. */
async function newestSchema({ env, clickhouse, logger }: WorkerParts): Promise<void> {
  const { SERVICE_CLICKHOUSE_CLUSTER: cluster, SERVICE_CLICKHOUSE_ANALYST_PASSWORD: password } = env;
  await migrate(clickhouse, { cluster });
  const refusal = password === undefined ? null : await ensureAnalyst(clickhouse, password, cluster);
  if (refusal !== null) logger.debug({ reason: refusal }, 'the store manages the user analyst by itself');
}

/**
 * Returns how rows are made durable: by one sync of the data directory before each checkpoint if
 * the store runs on this machine, otherwise by ClickHouse with every insert.
 */
async function chooseDurability({ env }: WorkerParts, store: ClickHouseLandingStore): Promise<() => Promise<void>> {
  const syncer =
    env.SERVICE_CLICKHOUSE_DATA_DIR === undefined ? null : await createSyncer(env.SERVICE_CLICKHOUSE_DATA_DIR);
  await store.syncInserts(syncer === null);
  return () => (syncer === null ? Promise.resolve() : syncer.sync());
}
