// The platform of a worker, on which all of its parts build: the environment, an identity, the
// clients of NATS and ClickHouse, and what depends on nothing else.
import { randomBytes } from 'node:crypto';
import { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import { statementNice } from '../../ops/platform/clickhouse/statement_nice.ts';
import { type Env, EnvError, hasStore, parseEnv } from '../../ops/platform/env.ts';
import { die } from '../../ops/platform/leave.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { ShardMap } from '../../ops/platform/nats/shard_map.ts';
import { TooManyStreams } from '../../ops/platform/nats/log_streams.ts';
import { fixedPartitions, logLimits, openLog } from '../../ops/platform/nats/open_log.ts';
import { PatternRunner } from '../../ops/platform/pattern_runner.ts';
import { openSealer, type Sealer } from '../../ops/platform/sealing.ts';
import { openStore, type Store } from '../../sql/client/shards.ts';
import type { WorkerParts } from './parts.ts';

const NATS_WAIT_MS = 10_000;

export interface Platform extends WorkerParts {
  /** Partitions of the ingest log. */
  partitions: number;
  /** The shards of ClickHouse; `clickhouse` reads all of them. */
  store: Store;
  /** Which shard has the rows of each partition. */
  places: ShardMap;
  sealer: Sealer;
  /**
   * Runs organizations' patterns and rules on another thread if they would take long on this one.
   */
  patterns: PatternRunner;
  deletions: OrgDeletions;
  /** Closes the clients. Call it after every other part has ended. */
  close: () => Promise<void>;
}

export interface WorkerEnv extends Env {
  SERVICE_NATS_URL: string;
}

/**
 * Returns the settings from the environment.
 *
 * @throws EnvError if a setting is missing or invalid
 */
export function readWorkerEnv(): WorkerEnv {
  const env = parseEnv(process.env);
  const { SERVICE_NATS_URL } = env;
  if (SERVICE_NATS_URL === undefined || !hasStore(env))
    throw new EnvError(
      'a pipeline worker needs SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything',
    );
  return { ...env, SERVICE_NATS_URL };
}

/**
 * Connects to NATS and creates the streams and buckets that are missing. It sends no query to
 * ClickHouse yet.
 *
 * @throws Error if NATS does not answer within NATS_WAIT_MS
 */
export async function openPlatform(env: WorkerEnv): Promise<Platform> {
  const workerId = `w${randomBytes(6).toString('hex')}`;
  const logger = createLogger('pipeline', env.SERVICE_LOG_LEVEL).child({ worker_id: workerId });
  metrics.startMetrics('pipeline', workerId);
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `pipeline-${workerId}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, logLimits(env));
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  if (env.SERVICE_LOG_STREAMS > partitions) throw new TooManyStreams(env.SERVICE_LOG_STREAMS, partitions);
  const places = await ShardMap.open(log, env.SERVICE_CLICKHOUSE_SHARDS, partitions, (error) => {
    logger.fatal({ err: error }, 'the store has a shard that this worker cannot reach');
    die();
  });
  const store = openStore(env, places, {
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
    ...(env.SERVICE_CLICKHOUSE_DATA_DIR !== undefined && {
      statementNice: statementNice(env.SERVICE_LANDING_NICE),
    }),
  });
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const patterns = new PatternRunner((result) => {
    metrics.patternJobsTotal.inc({ result });
  });
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const deletions = await OrgDeletions.open(log, onProblem);
  const close = async (): Promise<void> => {
    deletions.close();
    await nc.close();
    await store.close();
  };
  const { clickhouse } = store;
  return {
    env,
    logger,
    log,
    store,
    places,
    clickhouse,
    workerId,
    onProblem,
    partitions,
    sealer,
    patterns,
    deletions,
    close,
  };
}
