// Assembles one API process between its clients and its request listener, in the order of the
// dependencies: stores, intake, budgets, edge, admission, slices. ClickHouse may start later than
// the rest: its schema is created in the background.
import { hasLocalLogin } from '../ops/platform/env.ts';
import { openSealer } from '../ops/platform/sealing.ts';
import { Refusals } from '../ops/exchange/refusals.ts';
import * as metrics from '../ops/platform/metrics.ts';
import { trackConnected } from '../ops/platform/nats/connect.ts';
import { fixedPartitions } from '../ops/platform/nats/open_log.ts';
import { createApp, type RequestListener } from './app.ts';
import { createSessionTokens } from './http/session_token.ts';
import type { IngestDeps } from './intake/ingest/handler.ts';
import { createBodyRecorder } from './intake/ingest/store.ts';
import { openPortal } from './portal/routes.ts';
import { noteRefusal, type RefusalDeps } from './intake/refusals/note.ts';
import { startServiceGauges } from './system/gauges.ts';
import { ReadinessWatch } from './system/readiness.ts';
import { openAdmission } from './wiring/admission.ts';
import { openBudgets } from './wiring/budgets.ts';
import { openEdge } from './wiring/edge.ts';
import { openGatewayCalls, openIntake } from './wiring/intake.ts';
import { migrateInBackground, type Migrating } from './wiring/migrating.ts';
import { createFirstOrg } from './wiring/organizations.ts';
import { type ApiParts, isDevelopment, type WiringParts } from './wiring/parts.ts';
import { openSlices } from './wiring/slices.ts';
import { openStores, type Stores } from './wiring/stores.ts';

export interface Api {
  listener: RequestListener;
  /** Ends the calls through the gateway that are in progress; what they used is recorded. */
  endCalls: () => void;
  /** Ends the live streams, which would otherwise keep a drain waiting. */
  endLive: () => void;
  /** Resolves once everything that was published is confirmed or given up. */
  flush: () => Promise<void>;
  /** Stops watching and retrying. The caller closes the clients. */
  close: () => void;
}

/** Wires the API of one process. */
export async function assembleApi(given: ApiParts): Promise<Api> {
  const { env, log } = given;
  const parts = partsOf(given);
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const sealer = await openSealer(log, env.SERVICE_ENCRYPTION_KEY);
  const sessions = hasLocalLogin(env) ? createSessionTokens({ sealer, now: parts.now }) : null;
  const stores = await openStores(parts);
  const intake = await openIntake(parts, partitions);
  const { publisher, backlog, disk } = intake;
  await createFirstOrg(parts, stores);
  const budgets = await openBudgets(parts, stores, { sealer, partitions });
  const edge = await openEdge(parts, stores, sessions);
  const calls = openGatewayCalls(parts, stores, intake);
  const admission = openAdmission({
    limits: edge.deps.limits,
    calls: calls.open,
    callsPerOrg: env.SERVICE_GATEWAY_CALLS_PER_ORG,
    backlog,
    disk,
    isDeleted: stores.isGone,
    budgets: budgets.check,
  });
  const refusals = new Refusals(log.nc, parts.onProblem);
  const refused = noteRefusal.bind(null, refusalDeps(parts, stores, refusals));
  const recorder = createBodyRecorder({ admission, publisher, partitions, now: parts.now });
  const budgetRoutes = budgets.routes;
  const slices = await openSlices(parts, stores, { sealer, sessions, budgetRoutes, recorder, refusals });
  const migration = migrateInBackground(parts, slices.follow);
  const readiness = await openReadiness(parts, { partitions, migration, budgetsReady: budgets.isReady });
  const stopGauges = startServiceGauges({ readiness, jsm: log.jsm, tracked: parts.tracked });
  const listener = createApp({
    edge: edge.deps,
    ingest: { admission, publisher, once: edge.once, partitions, observeIngest, refused },
    gateway: {
      admission,
      countUse: (org_id, event) => budgets.check.count(org_id, event),
      routes: given.gatewayRoutes,
      recorder: calls.recorder,
      open: calls.open,
      orgOf: calls.orgOf,
      partitions,
      observeCall: (operation, outcome) => {
        metrics.gatewayCallsTotal.inc({ operation, outcome });
      },
    },
    analysts: slices.analysts,
    readiness,
    corsOrigins: env.SERVICE_CORS_ORIGINS,
    portal: env.SERVICE_PORTAL && env.SERVICE_PORTAL_DIR !== undefined ? openPortal(env.SERVICE_PORTAL_DIR) : null,
    routes: slices.routes,
  });
  return {
    listener,
    endCalls: calls.endAll,
    endLive: slices.endLive,
    flush: async () => {
      await calls.flush();
      await Promise.all([publisher.flush(), edge.flush()]);
    },
    close: () => {
      intake.stop();
      stopGauges();
      for (const part of [refusals, slices, budgets, stores, edge, readiness]) part.close();
      migration.stop();
    },
  };
}

function refusalDeps(parts: WiringParts, { orgs }: Stores, refusals: Refusals): RefusalDeps {
  return { refusals, development: isDevelopment(parts), hasOrg: (org_id) => orgs.get(org_id) !== null, now: parts.now };
}

function partsOf(given: ApiParts): WiringParts {
  return {
    ...given,
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
