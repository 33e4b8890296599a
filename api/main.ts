// The API process: settings, clients, the first org, then HTTP until it is told to stop. Draining loses nothing: no new
// connections, requests in flight end, what they published is confirmed, then the clients close.
// ClickHouse being away does not keep ingest from starting; NATS being away does, after a bounded wait.
import { flushCompileCache } from 'node:module';
import { EnvError, parseEnv } from '../ops/platform/env.ts';
import { openRoutes } from '../ops/platform/llm/routes.ts';
import { createLogger } from '../ops/platform/logger.ts';
import * as metrics from '../ops/platform/metrics.ts';
import { connectNats } from '../ops/platform/nats/connect.ts';
import { openLog } from '../ops/platform/nats/open_log.ts';
import { die, leave } from '../ops/platform/leave.ts';
import { createClickHouse } from '../sql/client/client.ts';
import { assembleApi } from './assemble.ts';
import { closeGracefully, httpServer, listen } from './http/server.ts';

const NATS_WAIT_MS = 15_000;
/** Requests in flight get this long to end once the process is told to stop. */
const DRAIN_MS = 8000;
/** Streams through the gateway can last longer than that: they are ended after this, in time to be recorded. */
const CALLS_MS = 4000;
/** Answers that are still being read then are broken off: what is recorded of the rest has to be written within DRAIN_MS. */
const ANSWERS_MS = 5500;

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (env.SERVICE_NATS_URL === undefined || env.SERVICE_CLICKHOUSE_URL === undefined) {
    throw new EnvError(
      'an API process takes SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything',
    );
  }
  const gatewayRoutes = openRoutes(env, process.env);
  const logger = createLogger('api', env.SERVICE_LOG_LEVEL);
  metrics.startMetrics('api', 'api');
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `api-${String(process.pid)}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
  const clickhouse = createClickHouse({
    url: env.SERVICE_CLICKHOUSE_URL,
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
  });
  const show = (line: string) => void process.stdout.write(`${line}\n`);
  const api = await assembleApi({ env, logger, log, clickhouse, gatewayRoutes, now: Date.now, show });
  const server = httpServer(api.listener);
  const port = await listen(server, env.SERVICE_HOST, env.SERVICE_PORT);
  process.send?.({ ready: true, port });
  // Kept now, as a process that is killed writes nothing at its end.
  flushCompileCache();
  logger.info({ host: env.SERVICE_HOST, port }, 'API is up');

  let draining = false;
  stop = async () => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; requests without an answer were not accepted');
      die();
    }, DRAIN_MS).unref();
    setTimeout(api.endCalls, CALLS_MS).unref();
    // A file that somebody reads slowly: what is flushed afterwards is worth more.
    setTimeout(() => {
      server.closeAllConnections();
    }, ANSWERS_MS).unref();
    await closeGracefully(server);
    await api.flush();
    api.close();
    await nc.close();
    await clickhouse.close();
    logger.info('API has drained');
    leave(0);
  };
}

/** Until the API is up there is nothing to drain. */
let stop = (): Promise<void> => {
  leave(0);
  return Promise.resolve();
};

process.on('SIGTERM', () => void stop());
// Ctrl-C reaches the whole process group; under a supervisor the order of the drain is the supervisor's.
process.on('SIGINT', () => {
  if (process.env['MILLRACE_SUPERVISED'] !== '1') void stop();
});
process.on('disconnect', () => void stop());

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  leave(1);
});
