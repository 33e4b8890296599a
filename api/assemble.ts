// Assembles one API process between its clients and its request listener, in the order of the
// dependencies: stores, intake, budgets, edge, admission, slices. ClickHouse may start later than
// the rest: its schema is created in the background.
import { hasLocalLogin, oidcClientOf } from '../ops/platform/env.ts';
import { openSealer } from '../ops/platform/sealing.ts';
import { Refusals } from '../ops/exchange/refusals.ts';
import * as metrics from '../ops/platform/metrics.ts';
import { trackConnected } from '../ops/platform/nats/connect.ts';
import { fixedPartitions } from '../ops/platform/nats/open_log.ts';
import { createApp, otlpDeps, type RequestListener } from './app.ts';
import { createGrpcServer, type GrpcServer } from './intake/otlp/grpc.ts';
import { createSessionTokens } from './http/session_token.ts';
import { ResponseCache } from './intake/gateway/cache.ts';
import type { IngestDeps } from './intake/ingest/handler.ts';
import { createBodyRecorder } from './intake/ingest/store.ts';
import { runSql } from './telemetry/analysts/run_sql.ts';
import { openPortal } from './portal/routes.ts';
import { noteRefusal, type RefusalDeps } from './intake/refusals/note.ts';
import { startServiceGauges } from './system/gauges.ts';
import { ReadinessWatch } from './system/readiness.ts';
import type { StatusDeps } from './system/status.ts';
import { keyRequestsOf } from './admission/key_rate.ts';
import { openAdmission } from './wiring/admission.ts';
import { openBudgets } from './wiring/budgets.ts';
import { compatProtocols } from './wiring/compat.ts';
import { type Edge, openEdge } from './wiring/edge.ts';
import { openGatewayCalls, openIntake } from './wiring/intake.ts';
import { migrateInBackground, type Migrating } from './wiring/migrating.ts';
import { createFirstOrg } from './wiring/organizations.ts';
import { type ApiParts, isDevelopment, issuerOf, type WiringParts } from './wiring/parts.ts';
import { pendingScoreQueue } from './wiring/pending_scores.ts';
import { openSlices } from './wiring/slices.ts';
import { openStores, type Stores } from './wiring/stores.ts';

export interface Api {
  listener: RequestListener;
  /** OTLP over gRPC; null where it is off. */
  grpc: GrpcServer | null;
  /**
   * Resolves once this process has tried to bring the schema of each shard up to date. Reads of a process
   * that answers before may fail although the store is available.
   */
  schemaTried: Promise<void>;
  /** Makes /healthz answer 503, so that load balancers take this process out. Requests are still answered. */
  leave: () => void;
  /** Ends the calls through the gateway that are in progress; what they used is recorded. */
  endCalls: () => void;
  /** Ends the live streams, which would otherwise keep a drain waiting. */
  endLive: () => void;
  /** Resolves once everything that was published is confirmed or given up. */
  flush: () => Promise<void>;
  /** Stops watching and retrying. The caller closes the clients. */
  close: () => void;
}

/** SQL of analysts, over HTTP and as a tool of MCP. */
const sqlOf = (env: ApiParts['env'], analysts: Parameters<typeof runSql>[0]) => ({
  analysts,
  mcp: {
    hasProvider: issuerOf(env) !== undefined,
    publicUrl: env.SERVICE_PUBLIC_URL,
    runSql: (question: Parameters<typeof runSql>[1]) => runSql(analysts, question),
  },
});

const slicesOf = ({ routes, keyInForce }: Awaited<ReturnType<typeof openBudgets>>, { deps }: Edge) => ({
  budgetRoutes: routes,
  keyInForce,
  adminToken: deps.auth.adminToken,
});

const portalOf = ({ SERVICE_PORTAL, SERVICE_PORTAL_DIR }: ApiParts['env']) =>
  SERVICE_PORTAL && SERVICE_PORTAL_DIR !== undefined ? openPortal(SERVICE_PORTAL_DIR) : null;

/** The upstreams of the gateway, its calls, and what organizations have set for them. */
const gatewayOf = (
  parts: WiringParts,
  { judges, policies }: Stores,
  { recorder, open }: ReturnType<typeof openGatewayCalls>,
) => ({
  judgesOf: (org_id: string) => judges.list(org_id),
  captureOf: (org_id: string) => policies.get(org_id).capture,
  routes: parts.gatewayRoutes,
  recorder,
  open,
  cache: new ResponseCache(parts.log, parts.now, parts.onProblem),
  observeCall,
});

/** True where the service signs session tokens of its own: logins by ticket, and at the identity provider. */
const hasOwnSessions = (env: ApiParts['env']): boolean => hasLocalLogin(env) || oidcClientOf(env) !== null;

const statusDeps = ({ log, tracked, clickhouse }: WiringParts, readiness: ReadinessWatch): StatusDeps => ({
  readiness,
  jsm: log.jsm,
  connected: () => tracked.connected,
  clickhouse,
});

/** Wires the API of one process. */
export async function assembleApi(given: ApiParts): Promise<Api> {
  const { env, log } = given;
  const parts = partsOf(given);
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const sessions = hasOwnSessions(env) ? createSessionTokens({ sealer, now: parts.now }) : null;
  const stores = await openStores(parts);
  const intake = await openIntake(parts, partitions);
  const { publisher, backlog, disk } = intake;
  await createFirstOrg(parts, stores);
  const budgets = await openBudgets(parts, stores, { sealer, partitions });
  const edge = await openEdge(parts, stores, { sessions, keyRequests: keyRequestsOf(budgets.check) });
  const calls = openGatewayCalls(parts, stores, intake);
  const admission = openAdmission({
    limits: edge.deps.limits,
    calls: calls.open,
    callsPerOrg: env.SERVICE_GATEWAY_CALLS_PER_ORG,
    backlog,
    disk,
    isDeleted: stores.isGone,
    budgets: budgets.check,
    keys: budgets.check,
  });
  const { refusals, refused } = openRefusals(parts, stores);
  const recorder = createBodyRecorder({ admission, publisher, partitions, now: parts.now });
  const own = { sealer, sessions, recorder, refusals };
  const slices = await openSlices(parts, stores, { ...own, ...slicesOf(budgets, edge) });
  const migration = migrateInBackground(parts, slices.follow);
  const readiness = await openReadiness(parts, { partitions, migration, budgetsReady: budgets.isReady });
  const stopGauges = startServiceGauges({ readiness, jsm: log.jsm, tracked: parts.tracked });
  const queuePending = pendingScoreQueue(log);
  const ingest = { admission, publisher, once: edge.once, partitions, observeIngest, refused, queuePending };
  const shutdown = openShutdown();
  const app = createApp({
    isDraining: shutdown.hasBegun,
    edge: edge.deps,
    ingest,
    gateway: {
      ...gatewayOf(parts, stores, calls),
      admission,
      countUse: budgets.check.count.bind(budgets.check),
      partitions,
    },
    ...sqlOf(env, slices.analysts),
    protocols: compatProtocols(parts, partitions),
    readiness,
    status: statusDeps(parts, readiness),
    corsOrigins: env.SERVICE_CORS_ORIGINS,
    portal: portalOf(env),
    routes: slices.routes,
  });
  return {
    listener: app.listener,
    grpc: env.SERVICE_OTLP_GRPC_PORT === undefined ? null : createGrpcServer(otlpDeps({ edge: edge.deps, ingest })),
    schemaTried: migration.tried,
    leave: shutdown.begin,
    endCalls: calls.endAll,
    endLive: () => {
      slices.endLive();
      void app.endStreams();
    },
    flush: () => calls.flush().then(() => Promise.all([publisher.flush(), edge.flush()]).then(() => undefined)),
    close: () => {
      intake.stop();
      stopGauges();
      for (const part of [refusals, slices, budgets, stores, edge, readiness]) part.close();
      migration.stop();
    },
  };
}

function openShutdown() {
  let begun = false;
  return {
    hasBegun: () => begun,
    begin: () => {
      begun = true;
    },
  };
}

function openRefusals(parts: WiringParts, stores: Stores) {
  const refusals = new Refusals(parts.log.nc, parts.onProblem);
  return { refusals, refused: noteRefusal.bind(null, refusalDeps(parts, stores, refusals)) };
}

function refusalDeps(parts: WiringParts, { orgs }: Stores, refusals: Refusals): RefusalDeps {
  return { refusals, development: isDevelopment(parts), hasOrg: (org_id) => orgs.get(org_id) !== null, now: parts.now };
}

function partsOf(given: ApiParts): WiringParts {
  return {
    ...given,
    clickhouse: given.store.clickhouse,
    tracked: trackConnected(given.log.nc),
    onProblem: (problem, cause) => {
      given.logger.warn({ err: cause }, problem);
    },
  };
}

function openReadiness(
  { log, clickhouse, tracked, onProblem }: WiringParts,
  given: { partitions: number; migration: Migrating; budgetsReady: () => boolean },
): Promise<ReadinessWatch> {
  const { partitions, migration, budgetsReady } = given;
  const pingClickHouse = async () => migration.done && (await clickhouse.ping());
  return ReadinessWatch.open(log, { tracked, partitions, pingClickHouse, budgetsReady }, onProblem);
}

const observeIngest: IngestDeps['observeIngest'] = (format, status, events, bytes) => {
  metrics.ingestRequestsTotal.inc({ format, status: String(status) });
  if (events === 0) return;
  metrics.ingestEventsTotal.inc({ format }, events);
  metrics.ingestBytesTotal.inc(bytes);
};

const observeCall = (operation: string, outcome: string): void => {
  metrics.gatewayCallsTotal.inc({ operation, outcome });
};
