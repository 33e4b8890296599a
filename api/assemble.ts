// Everything between a process's clients and its request listener, put together: stores, edge, slices, ingest. Reads
// ClickHouse's state in the background, so that it may come later than the rest.
import type { ServerResponse } from 'node:http';
import * as metrics from '../ops/platform/metrics.ts';
import { DiskWatch } from '../ops/platform/disk_watch.ts';
import { trackConnected } from '../ops/platform/nats/connect.ts';
import { fixedPartitions } from '../ops/platform/nats/open_log.ts';
import { createApp, type RequestListener } from './app.ts';
import { AckInbox } from './intake/ingest/ack_inbox.ts';
import { callsEnded } from './intake/gateway/handler.ts';
import { Recorder } from './intake/gateway/recorder.ts';
import { hearLanded } from '../ops/exchange/landing_reports.ts';
import { BacklogShares } from './admission/backlog_shares.ts';
import type { IngestDeps } from './intake/ingest/handler.ts';
import { Publisher } from './intake/ingest/publisher.ts';
import { startServiceGauges } from './system/gauges.ts';
import { ReadinessWatch } from './system/readiness.ts';
import { openAdmission } from './wiring/admission.ts';
import { openEdge } from './wiring/edge.ts';
import { migrateInBackground } from './wiring/migrating.ts';
import type { ApiParts, WiringParts } from './wiring/parts.ts';
import { openSlices } from './wiring/slices.ts';
import { openStores } from './wiring/stores.ts';

export interface Api {
  listener: RequestListener;
  /** Ends the calls through the gateway that are still under way; what came of them is recorded. */
  endCalls: () => void;
  /** Resolves when everything that was published is confirmed or given up. */
  flush: () => Promise<void>;
  /** Stops watching and retrying; the clients are the caller's. */
  close: () => void;
}

/** Wires the API of one process. */
export async function assembleApi(given: ApiParts): Promise<Api> {
  const { env, logger, log, clickhouse } = given;
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const tracked = trackConnected(log.nc);
  const parts: WiringParts = { ...given, tracked, onProblem };
  const partitions = await fixedPartitions(log, env.SERVICE_PARTITIONS);
  const stores = await openStores(parts);
  const disk = await DiskWatch.start({
    folder: env.SERVICE_DISK_GUARD_DIR ?? null,
    onChange: (low, { free, total }) => {
      metrics.diskLow.set(low ? 1 : 0);
      const facts = { free_bytes: free, total_bytes: total };
      if (low) logger.error(facts, 'the disk is nearly full: ingest answers 429 until there is room');
      else logger.warn(facts, 'the disk has room again: ingest goes on');
    },
    onLook: ({ free }) => {
      metrics.diskFreeBytes.set(free);
    },
    onProblem,
  });
  const backlog = new BacklogShares(partitions);
  const deafen = hearLanded(
    log.nc,
    (landings) => {
      backlog.landed(landings.map(({ partition, landed_through }) => [partition, landed_through]));
    },
    onProblem,
  );
  const publisher = new Publisher({
    port: new AckInbox(log.nc, tracked),
    partitions,
    now: () => performance.now(),
    commitMsMax: given.waits?.commitMsMax,
    observe: observePublish,
    onStored: (events, positions) => {
      backlog.stored(events, positions);
    },
  });
  const isDeleted = (org_id: string): boolean => stores.isGone(org_id);
  const edge = await openEdge(parts, stores);
  const calls = new Set<ServerResponse>();
  const slices = await openSlices(parts, stores, {
    publisher,
    partitions,
    admissionWith: (budgets) =>
      openAdmission({
        limits: edge.deps.limits,
        calls,
        callsPerOrg: env.SERVICE_GATEWAY_CALLS_PER_ORG,
        backlog,
        disk,
        isDeleted,
        budgets,
      }),
  });
  const orgOf = new WeakMap<ServerResponse, string>();
  // A call of an org that is being deleted ends at once; what it used is recorded nowhere.
  stores.deletions.onChange(({ org_id }) => {
    for (const res of calls) if (orgOf.get(res) === org_id) res.destroy();
  });
  const recorder = new Recorder({
    publish: (events) => {
      const wanted = events.filter(({ event }) => !stores.isGone(event.org_id));
      return wanted.length === 0 ? Promise.resolve(new Map<number, number>()) : publisher.publish(wanted);
    },
    disk,
    now: () => performance.now(),
    onLost: (reason, cause) => {
      metrics.gatewayRecordsLostTotal.inc({ reason });
      logger.error({ err: cause, reason }, 'the record of a call through the gateway is lost');
    },
  });
  const migration = migrateInBackground(parts, slices.follow);
  const pingClickHouse = async () => migration.done && (await clickhouse.ping());
  const readiness = await ReadinessWatch.open(
    log,
    { tracked, partitions, pingClickHouse, budgetsReady: slices.budgets.isReady },
    onProblem,
  );
  const stopGauges = startServiceGauges({ readiness, jsm: log.jsm, tracked });
  const listener = createApp({
    edge: edge.deps,
    ingest: {
      admission: slices.admission,
      publisher,
      once: edge.once,
      partitions,
      observeIngest,
    },
    gateway: {
      admission: slices.admission,
      countUse: (org_id, event) => slices.budgets.check.count(org_id, event),
      routes: given.gatewayRoutes,
      recorder,
      open: calls,
      orgOf,
      partitions,
      observeCall: (operation, outcome) => {
        metrics.gatewayCallsTotal.inc({ operation, outcome });
      },
    },
    analysts: slices.analysts,
    readiness,
    corsOrigins: env.SERVICE_CORS_ORIGINS,
    routes: slices.routes,
  });
  return {
    listener,
    endCalls: () => {
      for (const res of calls) res.destroy();
    },
    flush: async () => {
      await callsEnded(calls);
      await recorder.flush();
      await Promise.all([publisher.flush(), edge.flush()]);
    },
    close: () => {
      deafen();
      disk.stop();
      stopGauges();
      for (const part of [slices, stores, edge, readiness]) part.close();
      migration.stop();
    },
  };
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
