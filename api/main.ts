// The API process: settings, clients, the first org, then HTTP until it is told to stop. Draining loses nothing: no new
// connections, requests in flight end, what they published is confirmed, then the clients close.
// ClickHouse being away does not keep ingest from starting; NATS being away does, after a bounded wait.
import { randomBytes } from 'node:crypto';
import { type Env, EnvError, parseEnv } from '../ops/env.ts';
import { createLogger, type Logger } from '../ops/log.ts';
import * as metrics from '../ops/metrics.ts';
import { connectNats, trackConnected } from '../ops/nats/connect.ts';
import { fixedPartitions, type Log, openLog } from '../ops/streams.ts';
import { type ClickHouse, createClickHouse } from '../sql/client.ts';
import { migrate } from '../sql/migrate.ts';
import { createApp } from './app.ts';
import { Idempotency } from './http/idempotency.ts';
import type { EdgeDeps } from './http/mount.ts';
import { closeGracefully, httpServer, listen } from './http/server.ts';
import { classifyStoreFailure } from './http/store_errors.ts';
import { AckInbox } from './ingest/ack_inbox.ts';
import { Admission } from './ingest/admission.ts';
import { Publisher } from './ingest/publisher.ts';
import { bootstrapOrg } from './orgs/bootstrap.ts';
import { operatorRoutes, orgRoutes } from './orgs/routes.ts';
import { KeyStore, OrgStore } from './orgs/store.ts';
import { ReadinessWatch } from './system/readiness.ts';

const NATS_WAIT_MS = 15_000;
const MIGRATE_RETRY_MS = 1000;
/** Requests in flight get this long to end once the process is told to stop. */
const DRAIN_MS = 8000;

type OnProblem = (problem: string, cause: unknown) => void;

/** Applies migrations in the background until it works; reads answer 502 meanwhile. */
function migrateInBackground(clickhouse: ClickHouse, env: Env, logger: Logger): { readonly done: boolean; stop: () => void } {
  const state = { done: false, stopped: false, stop: () => undefined as void };
  state.stop = () => {
    state.stopped = true;
  };
  void (async () => {
    for (let complained = false; !state.stopped; ) {
      try {
        await migrate(clickhouse, { cluster: env.SERVICE_CLICKHOUSE_CLUSTER });
        state.done = true;
        return;
      } catch (cause) {
        if (!complained) logger.warn({ err: cause }, 'ClickHouse is not ready; reads answer 502 until it is, ingest goes on');
        complained = true;
        await new Promise((resolve) => setTimeout(resolve, MIGRATE_RETRY_MS));
      }
    }
  })();
  return state;
}

interface Parts {
  env: Env;
  logger: Logger;
  log: Log;
  clickhouse: ClickHouse;
  onProblem: OnProblem;
}

/** Everything between the clients and the request listener. */
async function assemble({ env, logger, log, clickhouse, onProblem }: Parts) {
  const now = Date.now;
  const tracked = trackConnected(log.nc);
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const [orgs, keys] = await Promise.all([OrgStore.open(log, onProblem), KeyStore.open(log, onProblem)]);
  const orgsDeps = { orgs, keys, now };
  const madeKey = await bootstrapOrg(orgsDeps, env.SERVICE_BOOTSTRAP_ORG_ID, env.SERVICE_BOOTSTRAP_API_KEY);
  if (madeKey !== null) process.stdout.write(`API key of ${env.SERVICE_BOOTSTRAP_ORG_ID}, shown this once: ${madeKey}\n`);
  const adminToken = env.SERVICE_ADMIN_TOKEN ?? randomBytes(24).toString('base64url');
  if (env.SERVICE_ADMIN_TOKEN === undefined) process.stdout.write(`Operator token of this process: ${adminToken}\n`);

  const migration = migrateInBackground(clickhouse, env, logger);
  const readiness = await ReadinessWatch.open(log, { tracked, partitions, pingClickHouse: async () => migration.done && (await clickhouse.ping()) }, onProblem);
  const edge: EdgeDeps = {
    auth: { keys, adminToken },
    idempotency: new Idempotency({ kv: await log.bucket('idempotency'), now, connected: () => tracked.connected, onProblem }),
    classifyStore: classifyStoreFailure,
    bodyBytesMax: env.SERVICE_MAX_BODY_BYTES,
    now,
    log: logger,
    observe: (route, method, status, seconds) => {
      metrics.httpRequestDurationSeconds.observe({ route, method, status: String(status) }, seconds);
    },
  };
  const publisher = new Publisher({
    port: new AckInbox(log.nc, tracked),
    partitions,
    now: () => performance.now(),
    observe: (events, seconds) => {
      metrics.logPublishSeconds.observe(seconds);
      metrics.logPublishEvents.observe(events);
    },
  });
  const listener = createApp({
    edge,
    ingest: {
      admission: new Admission(),
      publisher,
      partitions,
      observeIngest: (format, status, events, bytes) => {
        metrics.ingestRequestsTotal.inc({ format, status: String(status) });
        if (events === 0) return;
        metrics.ingestEventsTotal.inc({ format }, events);
        metrics.ingestBytesTotal.inc(bytes);
      },
    },
    readiness,
    routes: [...orgRoutes(orgsDeps), ...operatorRoutes(orgsDeps)],
  });
  const close = () => {
    migration.stop();
    for (const part of [readiness, orgs, keys]) part.close();
  };
  return { listener, publisher, close };
}

async function main(): Promise<void> {
  const env = parseEnv(process.env);
  if (env.SERVICE_NATS_URL === undefined || env.SERVICE_CLICKHOUSE_URL === undefined) {
    throw new EnvError('an API process takes SERVICE_NATS_URL and SERVICE_CLICKHOUSE_URL; npm start sets both and runs everything');
  }
  const logger = createLogger('api', env.SERVICE_LOG_LEVEL);
  const onProblem: OnProblem = (problem, cause) => {
    logger.warn({ err: cause }, problem);
  };
  metrics.startMetrics('api', 'api');
  const nc = await connectNats({ url: env.SERVICE_NATS_URL, name: `api-${String(process.pid)}`, waitMs: NATS_WAIT_MS });
  const log = await openLog(nc, { replicas: env.SERVICE_NATS_REPLICAS, logBytesMax: env.SERVICE_LOG_MAX_BYTES });
  const clickhouse = createClickHouse({
    url: env.SERVICE_CLICKHOUSE_URL,
    observeQuery: (query, seconds) => {
      metrics.clickhouseQuerySeconds.observe({ query }, seconds);
    },
  });
  const app = await assemble({ env, logger, log, clickhouse, onProblem });
  const server = httpServer(app.listener);
  const port = await listen(server, env.SERVICE_HOST, env.SERVICE_PORT);
  process.send?.({ ready: true, port });
  logger.info({ host: env.SERVICE_HOST, port }, 'API is up');

  let draining = false;
  const drain = async (): Promise<void> => {
    if (draining) return;
    draining = true;
    setTimeout(() => {
      logger.error('draining took too long; requests without an answer were not accepted');
      process.exit(1);
    }, DRAIN_MS).unref();
    await closeGracefully(server);
    await app.publisher.flush();
    app.close();
    await nc.close();
    await clickhouse.close();
    logger.info('API has drained');
    process.exit(0);
  };
  process.on('SIGTERM', () => void drain());
  // Ctrl-C reaches the whole process group; under a supervisor the order of the drain is the supervisor's.
  process.on('SIGINT', () => {
    if (process.env['MILLRACE_SUPERVISED'] !== '1') void drain();
  });
  process.on('disconnect', () => void drain());
}

main().catch((error: unknown) => {
  process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
});
