// The API process: parses settings, opens the clients, creates the first organization, then serves
// HTTP until a signal stops it. Draining loses nothing: the process says that it leaves, and after
// SERVICE_DRAIN_DELAY_MS it accepts no new connections, requests in flight end, what they published is
// confirmed, and then the clients close. Ingest starts without ClickHouse; without NATS the process ends after a bounded wait.
import { flushCompileCache } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { EnvError, hasStore, parseEnv } from '../ops/platform/env.ts';
import { openRoutes } from '../ops/platform/llm/routes.ts';
import { createLogger } from '../ops/platform/logger.ts';
import * as metrics from '../ops/platform/metrics.ts';
import { connectNats } from '../ops/platform/nats/connect.ts';
import { ShardMap } from '../ops/platform/nats/shard_map.ts';
import { fixedPartitions, logLimits, openLog } from '../ops/platform/nats/open_log.ts';
import { die, leave } from '../ops/platform/leave.ts';
import { compileChecks } from '../schemas/formats/formats.ts';
import { openStore } from '../sql/client/shards.ts';
import { assembleApi } from './assemble.ts';
import { announceClose, closeGracefully, httpServer, listen } from './http/server.ts';

const NATS_WAIT_MS = 15_000;
/**
 * The process listens after this time even if the schema of the store is not up to date, because it accepts
 * events without the store.
 */
const SCHEMA_MS_MAX = 5000;
/** Maximum time of the drain, which begins after SERVICE_DRAIN_DELAY_MS; then the process ends with the requests that are still in flight. */
const DRAIN_MS = 8000;
/**
 * Gateway streams can last longer than the drain; they are ended after this time, early enough to
 * be recorded.
 */
const CALLS_MS = 4000;
/**
 * Answers that clients are still reading are cut off after this time, so that the remaining records
 * can be written within DRAIN_MS.
 */
const ANSWERS_MS = 5500;

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (env.SERVICE_NATS_URL === undefined || !hasStore(env)) {
    throw new EnvError(
      'an API process needs SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything',
    );
  }
  const gatewayRoutes = openRoutes(env, process.env);
  const logger = createLogger('api', env.SERVICE_LOG_LEVEL);
  metrics.startMetrics('api', 'api');
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `api-${process.pid}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, logLimits(env));
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const places = await ShardMap.open(log, env.SERVICE_CLICKHOUSE_SHARDS, partitions, (error) => {
    logger.fatal({ err: error }, 'the store has a shard that this process cannot reach');
    die();
  });
  const store = openStore(env, places, {
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
  });
  const show = (line: string) => void process.stdout.write(`${line}\n`);
  const api = await assembleApi({ env, logger, log, store, gatewayRoutes, now: Date.now, show });
  compileChecks();
  await Promise.race([api.schemaTried, sleep(SCHEMA_MS_MAX, undefined, { ref: false })]);
  const server = httpServer(api.listener);
  const port = await listen(server, env.SERVICE_HOST, env.SERVICE_PORT);
  const grpcPort =
    api.grpc === null
      ? null
      : await listen(api.grpc.server, env.SERVICE_HOST, env.SERVICE_OTLP_GRPC_PORT ?? 0, 'SERVICE_OTLP_GRPC_PORT');
  process.send?.({ ready: true, port });
  // Written now, because a process that is killed writes nothing at its end.
  flushCompileCache();
  logger.info({ host: env.SERVICE_HOST, port, ...(grpcPort === null ? {} : { grpc_port: grpcPort }) }, 'API is up');

  let draining = false;
  stop = async () => {
    if (draining) return;
    draining = true;
    // Load balancers see the 503 and send their requests to other processes; clients see `Connection: close`.
    api.leave();
    announceClose(server);
    await sleep(env.SERVICE_DRAIN_DELAY_MS);
    setTimeout(() => {
      logger.error('draining took too long; requests without an answer were not accepted');
      die();
    }, DRAIN_MS).unref();
    setTimeout(api.endCalls, CALLS_MS).unref();
    // A client may read an answer slowly; the records that are flushed afterwards matter more.
    setTimeout(() => {
      server.closeAllConnections();
      api.grpc?.destroy();
    }, ANSWERS_MS).unref();
    api.endLive();
    await Promise.all([closeGracefully(server), api.grpc?.closeGracefully()]);
    await api.flush();
    api.close();
    await nc.close();
    await store.close();
    logger.info('API has drained');
    leave(0);
  };
}

/** Until the API is up, there is nothing to drain. */
let stop = (): Promise<void> => {
  leave(0);
  return Promise.resolve();
};

process.on('SIGTERM', () => void stop());
// Ctrl-C reaches the whole process group; the supervisor decides the order of the drain.
process.on('SIGINT', () => {
  if (process.env['MILLRACE_SUPERVISED'] !== '1') void stop();
});
process.on('disconnect', () => void stop());

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
