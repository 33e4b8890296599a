// The data plane of a worker: everything between the ingest log and the rows in the store, in the order in which the parts
// depend on each other. Nothing runs before start.
import { OrgTime } from '../../ops/platform/org_time.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import { type Budgets, openBudgets } from '../budgets/open.ts';
import { createPriceBook } from '../domain/pricing/pricing.ts';
import { PROFILE_RATE } from '../domain/traces/keep_rules.ts';
import { ClickHouseJudgedStore } from '../judging/judged_store.ts';
import { Cooldowns } from '../judging/recent_judgements.ts';
import { type ScoringDeps, scoreTraces } from '../judging/score_completed.ts';
import { AgentActivity } from '../landing/agent_activity.ts';
import { ClickHouseHistoryStore } from '../landing/history_store.ts';
import { Lander } from '../landing/lander.ts';
import { TextMover } from '../landing/text_mover.ts';
import { ClickHouseTextStore } from '../landing/text_store.ts';
import { LIMITS } from '../limits.ts';
import { onTracesDeleted } from '../retention/deleted_traces.ts';
import type { RetentionPolicies } from '../settings/retention_policies.ts';
import { IdWindow } from '../stages/id_window.ts';
import { createTopology, type Topology } from '../topology.ts';
import { bufferedAmong, TailSampler } from '../traces/tail_sampling.ts';
import { KnownRows } from '../worker/known_rows.ts';
import { LogReader } from '../worker/log_reader.ts';
import { Ownership, type PartitionHolder } from '../worker/ownership.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { PrepareDeps } from '../worker/prepare.ts';
import { Publisher } from '../worker/publish.ts';
import { createStageRunner } from '../worker/stage_runner.ts';
import { takeOver } from '../worker/takeover.ts';
import { Worker } from '../worker/worker.ts';
import type { MetricsServer } from './metrics_server.ts';
import { countPublished, untilDone } from './parts.ts';
import type { Platform } from './platform.ts';
import type { Settings } from './settings.ts';
import { stageMetrics } from './stage_metrics.ts';
import type { StoreUp } from './store.ts';

const HOUR_MS = 3_600_000;

export interface DataPlaneParts {
  platform: Platform;
  settings: Settings;
  /** How long each organization's texts are kept: stamped on every text that lands. */
  retention: RetentionPolicies;
  storeUp: StoreUp;
  metricsServer: Pick<MetricsServer, 'url' | 'isReady'>;
}

export interface DataPlane {
  states: ReadonlyMap<number, PartitionState>;
  ownership: Ownership;
  worker: Worker;
  reader: LogReader;
  budgets: Budgets;
  /**
   * Begins to own partitions, to read them and to move texts.
   * @param onFailure called once when the worker ends by an error that no retry mends
   */
  start: (onFailure: (error: unknown) => void) => Promise<void>;
  /** Lands what was read, gives the partitions back and resolves when nothing runs any more. */
  stop: () => Promise<void>;
}

export async function openDataPlane(parts: DataPlaneParts): Promise<DataPlane> {
  const { platform, settings, storeUp } = parts;
  const { log, logger, clickhouse } = platform;
  const states = new Map<number, PartitionState>();
  const reader = new LogReader({ js: log.js, logger });
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
    },
    sync: async () => {
      await activity.write();
      await storeUp.sync();
    },
  });
  const holder = createHolder(parts, states, ownership, worker);
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
      await ownership.start(holder);
      mover.start();
    },
    stop: async () => {
      await mover.stop();
      // The store or NATS may be unavailable. The next owner of the partitions then starts from the last checkpoint.
      await ownership.stop().catch((error: unknown) => {
        logger.warn(
          { err: error },
          'partitions could not be given back; other workers take them over when the lease of this one expires',
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
  return new TextMover({
    store: new ClickHouseTextStore(platform.clickhouse, storeUp.fences),
    workerId: platform.workerId,
    logger: platform.logger,
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

/** What turns the messages of a batch into rows: the stages, tail sampling, judging, and their look-ups in the store. */
function openPreparation(
  parts: DataPlaneParts,
  states: ReadonlyMap<number, PartitionState>,
  reader: LogReader,
): PrepareDeps {
  const { platform, storeUp, retention } = parts;
  const { logger } = platform;
  const known = new KnownRows(platform.clickhouse);
  const scoring = openScoring(parts);
  return {
    topology: openTopology(parts, states, known),
    runner: createStageRunner(stageMetrics, logger),
    tail: createTailSampler(parts),
    observer: stageMetrics,
    logBase: storeUp.logBase,
    partitions: platform.partitions,
    isBehind: () => reader.lag > 0,
    textDays: (org_id) => retention.of(org_id).telemetry_events.full_prompt_response_days,
    isDeleted: (org_id) => platform.deletions.isRunning(org_id),
    findTraces: (partition, traces) =>
      untilDone(logger, 'looking up traces', () => known.findTraces(partition, traces)),
    findCorrections: (partition, ids) =>
      untilDone(logger, 'looking up corrections', () => known.findCorrections(partition, ids)),
    judge: (partition, traces) => scoreTraces(scoring, partition, traces),
    now: () => Date.now(),
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

function openTopology(
  { platform, settings }: DataPlaneParts,
  states: ReadonlyMap<number, PartitionState>,
  known: KnownRows,
): Topology {
  const { env } = platform;
  const { prices, policies, piiPolicies } = settings;
  const orphan = new IdWindow(windowMsOf(platform), 0);
  return createTopology({
    decode: {
      prices: createPriceBook(prices.of),
      maxPromptTokens: (org_id) => policies.of(org_id).max_prompt_tokens,
      redactorOf: piiPolicies.of,
    },
    dedupe: {
      // A partition lost in the middle of a batch has no window any more; its rows are not written.
      windowOf: (partition) => states.get(partition)?.window ?? orphan,
      forgottenOf: (partition) => states.get(partition)?.forgotten ?? null,
      findLanded: async (events) => new Set([...(await known.findLanded(events)), ...bufferedAmong(states, events)]),
      now: () => Date.now(),
    },
    sample: {
      profile: env.SERVICE_SAMPLING_PROFILE,
      enabled: env.SERVICE_SAMPLING_ENABLED,
      slowMs: env.SERVICE_SAMPLING_SLOW_MS,
    },
  });
}

const windowMsOf = ({ env }: Platform): number => env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;

/** Tail sampling has nothing to decide where the profile stores every event in full. */
const usesTailSampling = ({ env }: Platform): boolean =>
  env.SERVICE_SAMPLING_TAIL && env.SERVICE_SAMPLING_ENABLED && PROFILE_RATE[env.SERVICE_SAMPLING_PROFILE] < 1;

function createTailSampler({ platform }: DataPlaneParts): TailSampler | null {
  const { env } = platform;
  if (!usesTailSampling(platform)) return null;
  return new TailSampler({
    slots: env.SERVICE_SAMPLING_BUFFER_SLOTS,
    bytes: LIMITS.tail_bytes_max,
    traceBytes: LIMITS.tail_trace_bytes_max,
    read: { events: LIMITS.tail_replay_events_max, bytes: LIMITS.tail_replay_bytes_max },
    holdMs: LIMITS.tail_idles_max * Math.max(env.SERVICE_TRACE_GRACE_MS, env.SERVICE_TRACE_IDLE_MS),
    slowMs: env.SERVICE_SAMPLING_SLOW_MS,
  });
}

function openScoring({ platform, settings }: DataPlaneParts): ScoringDeps {
  const { logger, clickhouse, patterns } = platform;
  const judged = new ClickHouseJudgedStore(clickhouse);
  const patiently = <T>(read: () => Promise<T>): Promise<T> => untilDone(logger, 'reading traces to be judged', read);
  return {
    judgesOf: settings.judges.of,
    store: {
      spans: (partition, refs) => patiently(() => judged.spans(partition, refs)),
      texts: (partition, refs, places) => patiently(() => judged.texts(partition, refs, places)),
      judgements: (partition, refs) => patiently(() => judged.judgements(partition, refs)),
    },
    time: new OrgTime(),
    runner: patterns,
    cooldowns: new Cooldowns(),
    now: () => Date.now(),
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

function createHolder(
  { platform, settings, storeUp }: DataPlaneParts,
  states: ReadonlyMap<number, PartitionState>,
  ownership: Ownership,
  worker: Worker,
): PartitionHolder {
  const { env, logger, clickhouse, partitions } = platform;
  const deps = {
    ownership,
    states,
    worker,
    fences: storeUp.fences,
    store: new ClickHouseHistoryStore(clickhouse, storeUp.store),
    history: { logBase: storeUp.logBase, windowMs: windowMsOf(platform), tail: usesTailSampling(platform) },
    partitions,
    graceMs: env.SERVICE_TRACE_GRACE_MS,
    idleMs: env.SERVICE_TRACE_IDLE_MS,
    isJudged: (org_id: string) => settings.judges.of(org_id) !== null,
  };
  return {
    acquire: (records) => untilDone(logger, 'bringing partitions up', () => takeOver(deps, records)),
    release: (released) => worker.release(released),
    lose: (partition) => {
      worker.lose(partition);
    },
  };
}
