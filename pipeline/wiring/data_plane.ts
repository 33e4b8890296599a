// Wiring of the data plane of a worker: everything between the ingest log and the rows in the
// store.
//
// Each part is built after the parts that it depends on. Nothing runs before `start`.
import * as metrics from '../../ops/platform/metrics.ts';
import { type Budgets, openBudgets } from '../budgets/open.ts';
import { AgentActivity } from '../landing/agent_activity.ts';
import { ClickHouseHistoryStore } from '../landing/history_store.ts';
import { Lander } from '../landing/lander.ts';
import { ClickHouseOlderTextStore } from '../landing/older_text_store.ts';
import { OlderTexts } from '../landing/older_texts.ts';
import { PlaceSweep } from '../landing/place_sweep.ts';
import { ReplacedSpans } from '../landing/replaced_spans.ts';
import { TextMover } from '../landing/text_mover.ts';
import { ClickHouseTextStore } from '../landing/text_store.ts';
import { onTracesDeleted } from '../retention/deleted_traces.ts';
import type { RetentionPolicies } from '../settings/retention_policies.ts';
import type { PlacedRecord } from '../stages/match.ts';
import { KnownRows } from '../worker/known_rows.ts';
import { LogReaders } from '../worker/log_readers.ts';
import { Ownership, type PartitionHolder } from '../worker/ownership.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import { Publisher } from '../worker/publish.ts';
import { takeOver } from '../worker/takeover.ts';
import { Worker } from '../worker/worker.ts';
import type { MetricsServer } from './metrics_server.ts';
import { countPublished, untilDone } from './parts.ts';
import type { Platform } from './platform.ts';
import { openPreparation, usesTailSampling, windowMsOf } from './preparation.ts';
import type { Settings } from './settings.ts';
import type { StoreUp } from './store.ts';

export interface DataPlaneParts {
  platform: Platform;
  settings: Settings;
  /** Retention of each organization's texts, which is stamped on every text that lands. */
  retention: RetentionPolicies;
  storeUp: StoreUp;
  metricsServer: Pick<MetricsServer, 'url' | 'isReady'>;
}

export interface DataPlane {
  states: ReadonlyMap<number, PartitionState>;
  ownership: Ownership;
  worker: Worker;
  reader: LogReaders;
  budgets: Budgets;
  /**
   * Starts the worker, claims partitions and starts to move texts.
   *
   * @param onFailure called once if the worker ends with an error that no retry resolves
   */
  start: (onFailure: (error: unknown) => void) => Promise<void>;
  /** Lands what was read, gives up the partitions, and resolves when nothing runs any more. */
  stop: () => Promise<void>;
}

export async function openDataPlane(parts: DataPlaneParts): Promise<DataPlane> {
  const { platform, settings, storeUp } = parts;
  const { log, logger, clickhouse } = platform;
  const states = new Map<number, PartitionState>();
  const reader = new LogReaders({ js: log.js, logger, layout: () => log.streams.layout });
  const ownership = await openOwnership(parts);
  const budgets = await openBudgets({
    log,
    logger,
    clickhouse,
    policies: settings.policies,
    isLeader: () => ownership.isLeader,
    records: settings.budgetRecords,
    onPublished: countPublished,
  });
  const activity = new AgentActivity((heard) => storeUp.store.writeActivity(heard));
  const replaced = new ReplacedSpans({ clickhouse, logger, windowMs: windowMsOf(platform), now: () => Date.now() });
  const worker = new Worker({
    states,
    reader,
    prepare: openPreparation(parts, states, reader),
    lander: createLander(parts, ownership),
    ownership,
    publisher: createPublisher(platform),
    logger,
    reportLanded: (prepared) => {
      activity.note(prepared.usage);
      budgets.reportLanded(prepared);
      if (prepared.replaces) replaced.wake();
    },
    sync: async () => {
      await activity.write();
      await storeUp.sync();
    },
  });
  const holder = createHolder(parts, states, ownership, worker, replaced);
  const mover = createTextMover(parts, ownership);
  return {
    states,
    ownership,
    worker,
    reader,
    budgets,
    start: async (onFailure) => {
      worker.start(onFailure);
      onTracesDeleted(log.nc, () => {
        worker.forgetComplete();
      });
      log.streams.onChange(() => {
        worker.streamsChanged();
      });
      await ownership.start(holder);
      mover.start();
    },
    stop: async () => {
      await mover.stop();
      await replaced.stop();
      // NATS or the store may be unavailable. The next owner of the partitions then starts from the
      // last checkpoint.
      await ownership.stop().catch((error: unknown) => {
        logger.warn(
          { err: error },
          'partitions could not be released; other workers take them over when the lease of this worker expires',
        );
      });
      await worker.stop();
      await budgets.stop();
    },
  };
}

async function openOwnership({ platform, storeUp, metricsServer }: DataPlaneParts): Promise<Ownership> {
  const { log, logger, workerId, partitions } = platform;
  return new Ownership({
    nc: log.nc,
    kv: await log.bucket('partitions'),
    workerId,
    partitions,
    metricsUrl: metricsServer.url,
    streamOf: (partition) => log.streams.layout.open.findIndex((stream) => stream.has(partition)),
    isUp: () => metricsServer.isReady(),
    epochBase: storeUp.epochBase,
    logger,
  });
}

function createPublisher({ log, logger }: Platform): Publisher {
  return new Publisher(log, logger, {
    now: () => Date.now(),
    onPublished: countPublished,
    onLetterLost: () => {
      metrics.deadLettersLostTotal.inc();
    },
  });
}

function createLander({ platform, storeUp }: DataPlaneParts, ownership: Ownership): Lander {
  const { logger, workerId } = platform;
  return new Lander({
    store: storeUp.store,
    workerId,
    logger,
    owned: () => ownership.owned,
    onFenced: (partition) => {
      logger.warn({ partition }, 'the store has a newer owner of this partition');
      ownership.fenced(partition);
    },
    observe: (table, rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table }, rows);
    },
  });
}

function createTextMover({ platform, storeUp }: DataPlaneParts, ownership: Ownership): TextMover {
  const { clickhouse, logger, workerId } = platform;
  const older = new ClickHouseOlderTextStore(clickhouse, storeUp.fences, workerId);
  return new TextMover({
    store: new ClickHouseTextStore(clickhouse, storeUp.fences),
    workerId,
    logger,
    background: [new PlaceSweep(older, logger), new OlderTexts({ store: older, workerId, logger, sync: storeUp.sync })],
    isLeader: () => ownership.isLeader,
    sync: storeUp.sync,
    observe: (waiting, moved, seconds) => {
      metrics.pipelineTextsWaiting.set(waiting);
      if (moved === 0) return;
      metrics.clickhouseInsertSeconds.observe({ table: 'span_texts' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'span_texts' }, moved);
    },
  });
}

function createHolder(
  { platform, settings, storeUp }: DataPlaneParts,
  states: ReadonlyMap<number, PartitionState>,
  ownership: Ownership,
  worker: Worker,
  replaced: ReplacedSpans,
): PartitionHolder {
  const { env, logger, clickhouse, partitions } = platform;
  const known = new KnownRows(clickhouse);
  const deps = {
    ownership,
    states,
    worker,
    fences: storeUp.fences,
    store: new ClickHouseHistoryStore(clickhouse),
    history: { logBase: storeUp.logBase, windowMs: windowMsOf(platform), tail: usesTailSampling(platform) },
    partitions,
    graceMs: env.SERVICE_TRACE_GRACE_MS,
    idleMs: env.SERVICE_TRACE_IDLE_MS,
    findCalls: (places: readonly PlacedRecord[]) => known.findCalls(places),
    isJudged: (org_id: string) => settings.judges.of(org_id) !== null,
  };
  return {
    acquire: async (records) => {
      await untilDone(logger, 'bringing partitions up', () => takeOver(deps, records));
      replaced.takeOver();
    },
    release: (released) => worker.release(released),
    lose: (partition) => {
      worker.lose(partition);
    },
  };
}
