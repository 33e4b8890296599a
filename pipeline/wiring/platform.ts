// What every part of a worker stands on: settings from the environment, an identity, and the clients of NATS and ClickHouse.
import { randomBytes } from 'node:crypto';
import { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import { type Env, EnvError, parseEnv } from '../../ops/platform/env.ts';
import { createLogger } from '../../ops/platform/logger.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { connectNats } from '../../ops/platform/nats/connect.ts';
import { fixedPartitions, openLog } from '../../ops/platform/nats/open_log.ts';
import { PatternRunner } from '../../ops/platform/pattern_runner.ts';
import { openSealer, type Sealer } from '../../ops/platform/sealing.ts';
import { createClickHouse } from '../../sql/client/client.ts';
import type { WorkerParts } from './parts.ts';

const NATS_WAIT_MS = 10_000;

export interface Platform extends WorkerParts {
  /** Partitions of the ingest log. */
  partitions: number;
  sealer: Sealer;
  /** Runs patterns and rules of organizations that would take long on this thread. */
  patterns: PatternRunner;
  deletions: OrgDeletions;
  /** Closes the clients. Call it last. */
  close: () => Promise<void>;
}

export interface WorkerEnv extends Env {
  SERVICE_NATS_URL: string;
  SERVICE_CLICKHOUSE_URL: string;
}

/** @throws EnvError */
export function readWorkerEnv(): WorkerEnv {
  const env = parseEnv(process.env);
  const { SERVICE_NATS_URL, SERVICE_CLICKHOUSE_URL } = env;
  if (SERVICE_NATS_URL === undefined || SERVICE_CLICKHOUSE_URL === undefined)
    throw new EnvError(
      'a pipeline worker takes SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything',
    );
  return { ...env, SERVICE_NATS_URL, SERVICE_CLICKHOUSE_URL };
}

/**
 * Connects to NATS, creates the streams and buckets that are missing, and resolves. ClickHouse is not asked anything yet.
 * @throws if NATS does not answer within NATS_WAIT_MS
 */
export async function openPlatform(env: WorkerEnv): Promise<Platform> {
  const workerId = `w${randomBytes(6).toString('hex')}`;
  const logger = createLogger('pipeline', env.SERVICE_LOG_LEVEL).child({ worker_id: workerId });
  metrics.startMetrics('pipeline', workerId);
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `pipeline-${workerId}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const clickhouse = createClickHouse({
    url: env.SERVICE_CLICKHOUSE_URL,
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
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
    await clickhouse.close();
  };
  return { env, logger, log, clickhouse, workerId, onProblem, partitions, sealer, patterns, deletions, close };
}
