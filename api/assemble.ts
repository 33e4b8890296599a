// Everything between a process's clients and its request listener: stores, edge, ingest, routes. The one place where the
// slices meet. Reads ClickHouse's state in the background, so that it may come later than the rest.
import { randomBytes } from 'node:crypto';
import type { Env } from '../ops/env.ts';
import type { Logger } from '../ops/log.ts';
import * as metrics from '../ops/metrics.ts';
import { trackConnected } from '../ops/nats/connect.ts';
import { fixedPartitions, type Log } from '../ops/streams.ts';
import type { ClickHouse } from '../sql/client.ts';
import { migrate } from '../sql/migrate.ts';
import { createApp, type RequestListener } from './app.ts';
import { Idempotency } from './http/idempotency.ts';
import type { EdgeDeps } from './http/mount.ts';
import { classifyStoreFailure } from './http/store_errors.ts';
import { AckInbox } from './ingest/ack_inbox.ts';
import { Admission } from './ingest/admission.ts';
import type { IngestDeps } from './ingest/handler.ts';
import { Publisher } from './ingest/publisher.ts';
import { bootstrapOrg } from './orgs/bootstrap.ts';
import { operatorRoutes, orgRoutes } from './orgs/routes.ts';
import { KeyStore, OrgStore } from './orgs/store.ts';
import { spanRoutes } from './spans/routes.ts';
import { traceRoutes } from './traces/routes.ts';
import { ReadinessWatch } from './system/readiness.ts';

const MIGRATE_RETRY_MS = 1000;

type ApiSettings = Pick<
  Env,
  | 'SERVICE_PARTITIONS'
  | 'SERVICE_BOOTSTRAP_ORG_ID'
  | 'SERVICE_BOOTSTRAP_API_KEY'
  | 'SERVICE_ADMIN_TOKEN'
  | 'SERVICE_CLICKHOUSE_CLUSTER'
  | 'SERVICE_MAX_BODY_BYTES'
>;

export interface ApiParts {
  env: ApiSettings;
  logger: Logger;
  log: Log;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  /** Shows a secret that this process has made up, once. */
  show: (line: string) => void;
}

export interface Api {
  listener: RequestListener;
  /** Resolves when everything that was published is confirmed or given up. */
  flush: () => Promise<void>;
  /** Stops watching and retrying; the clients are the caller's. */
  close: () => void;
}

/** Wires the API of one process. */
export async function assembleApi({ env, logger, log, clickhouse, now, show }: ApiParts): Promise<Api> {
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const tracked = trackConnected(log.nc);
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const [orgs, keys] = await Promise.all([OrgStore.open(log, onProblem), KeyStore.open(log, onProblem)]);
  const orgsDeps = { orgs, keys, now };
  const madeKey = await bootstrapOrg(orgsDeps, env.SERVICE_BOOTSTRAP_ORG_ID, env.SERVICE_BOOTSTRAP_API_KEY);
  if (madeKey !== null) show(`API key of ${env.SERVICE_BOOTSTRAP_ORG_ID}, shown this once: ${madeKey}`);
  const adminToken = env.SERVICE_ADMIN_TOKEN ?? randomBytes(24).toString('base64url');
  if (env.SERVICE_ADMIN_TOKEN === undefined) show(`Operator token of this process: ${adminToken}`);

  const migration = migrateInBackground(clickhouse, env, logger);
  const pingClickHouse = async () => migration.done && (await clickhouse.ping());
  const readiness = await ReadinessWatch.open(log, { tracked, partitions, pingClickHouse }, onProblem);
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
    observe: observePublish,
  });
  const listener = createApp({
    edge,
    ingest: { admission: new Admission(), publisher, partitions, observeIngest },
    readiness,
    routes: [...traceRoutes({ clickhouse, now }), ...spanRoutes({ clickhouse }), ...orgRoutes(orgsDeps), ...operatorRoutes(orgsDeps)],
  });
  const close = () => {
    migration.stop();
    for (const part of [readiness, orgs, keys]) part.close();
  };
  return { listener, flush: () => publisher.flush(), close };
}

const observePublish = (events: number, seconds: number): void => {
  metrics.logPublishSeconds.observe(seconds);
  metrics.logPublishEvents.observe(events);
};

const observeIngest: IngestDeps['observeIngest'] = (format, status, events, bytes) => {
  metrics.ingestRequestsTotal.inc({ format, status: String(status) });
  if (events === 0) return;
  metrics.ingestEventsTotal.inc({ format }, events);
  metrics.ingestBytesTotal.inc(bytes);
};

/** Applies migrations until it works; reads answer 502 meanwhile. */
function migrateInBackground(clickhouse: ClickHouse, env: ApiSettings, logger: Logger): { readonly done: boolean; stop: () => void } {
  const stopped = new AbortController();
  const state = {
    done: false,
    stop: () => {
      stopped.abort();
    },
  };
  const run = async () => {
    for (let tries = 0; !stopped.signal.aborted; tries++) {
      try {
        await migrate(clickhouse, { cluster: env.SERVICE_CLICKHOUSE_CLUSTER });
        state.done = true;
        return;
      } catch (cause) {
        if (tries === 0) logger.warn({ err: cause }, 'ClickHouse is not ready; reads answer 502 until it is, ingest goes on');
        await new Promise((resolve) => setTimeout(resolve, MIGRATE_RETRY_MS).unref());
      }
    }
  };
  void run();
  return state;
}
