// The way of events through one worker, put together: topology, ownership, reader, worker, lander, mover of texts, budgets.
import type { Env } from '../../ops/platform/env.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { OrgDeletions } from '../../ops/exchange/org_deletions.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { BudgetRecord } from '../../schemas/records/budget.ts';
import { type Budgets, openBudgets } from '../budgets/open.ts';
import { PROFILE_RATE } from '../domain/traces/keep_rules.ts';
import type { Runner } from '../domain/patterns/bounds.ts';
import { createPriceBook } from '../domain/pricing/pricing.ts';
import type { RetentionPolicies } from '../settings/retention_policies.ts';
import { LiveTaskThrottle } from '../judging/live_task_throttle.ts';
import { JudgedInputs } from '../judging/rule_inputs.ts';
import { ClickHouseJudgedStore } from '../judging/rule_inputs_store.ts';
import type { Judges } from '../judging/enabled_judges.ts';
import { KnownRows } from '../worker/known_rows.ts';
import { Lag } from '../worker/lag.ts';
import { AgentActivity } from '../landing/agent_activity.ts';
import { Lander } from '../landing/landing.ts';
import { LogReader } from '../worker/log_reader.ts';
import { Ownership, type PartitionRecord } from '../worker/ownership.ts';
import { OrgTime } from '../../ops/platform/org_time.ts';
import { emptyMemory, rebuild } from '../worker/partition_state.ts';
import type { PiiPolicies } from '../settings/pii_policies.ts';
import type { Policies } from '../settings/org_policies.ts';
import type { Prices } from '../settings/prices.ts';
import { createPublisher } from '../worker/publish.ts';
import { scoreTraces, type ScoringDeps } from '../judging/rule_scores.ts';
import { createStageRunner, type StageObserver } from '../worker/stage_runner.ts';
import { heldAmong, TailSampler } from '../traces/tail_sampling.ts';
import { TextMover } from '../landing/text_mover.ts';
import { Worker } from '../worker/worker.ts';
import { createDecodeStage } from '../stages/decode.ts';
import { createDedupeStage } from '../stages/dedupe.ts';
import { IdWindow } from '../stages/id_window.ts';
import { createMeterStage } from '../stages/meter.ts';
import { createSampleStage } from '../stages/sample.ts';
import { LIMITS, type Topology } from '../topology.ts';
import { onTold, untilDone, type WorkerParts } from './parts.ts';
import type { StoreUp } from './store.ts';

const GAUGES_MS = 1000;
const HOUR_MS = 3_600_000;

export interface LandingParts extends WorkerParts, StoreUp {
  policies: Policies;
  /** How long each org's texts are kept: stamped on what lands. */
  retention: RetentionPolicies;
  piiPolicies: PiiPolicies;
  prices: Prices;
  judges: Judges;
  budgetRecords: WatchedBucket<BudgetRecord>;
  deletions: Pick<OrgDeletions, 'isRunning'>;
  partitions: number;
  /** Where patterns and rules of orgs run that would take long here. */
  patterns: Runner;
  metricsUrl: string;
  /** Whether every part of the worker has started. */
  isUp: () => boolean;
}

export interface Landing {
  ownership: Ownership;
  worker: Worker;
  mover: TextMover;
  reader: LogReader;
  budgets: Budgets;
}

const observer: StageObserver = {
  batch(stage, seconds, received, emitted) {
    metrics.pipelineBatchSeconds.observe({ stage }, seconds);
    metrics.pipelineEventsReceivedTotal.inc({ stage }, received);
    metrics.pipelineEventsEmittedTotal.inc({ stage }, emitted);
  },
  dropped(stage, reason, count) {
    metrics.pipelineEventsDroppedTotal.inc({ stage, reason }, count);
  },
  dead(stage, reason, count) {
    metrics.pipelineEventsDeadTotal.inc({ stage, reason }, count);
  },
  sampled(retain, reason, count) {
    metrics.samplingEventsTotal.inc({ retain, reason }, count);
  },
};

function createTopology(
  { env, policies, piiPolicies, prices }: LandingParts,
  known: KnownRows,
  worker: () => Worker,
): Topology {
  const windowMs = env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;
  const orphan = new IdWindow(windowMs, 0);
  return {
    decode: createDecodeStage({
      prices: createPriceBook(prices.of),
      maxPromptTokens: (org_id) => policies.of(org_id).max_prompt_tokens,
      redactorOf: piiPolicies.of,
    }),
    dedupe: createDedupeStage({
      // A partition lost in the middle of a batch has no window any more; its rows are not written.
      windowOf: (partition) => worker().states.get(partition)?.window ?? orphan,
      forgottenOf: (partition) => worker().states.get(partition)?.forgotten ?? null,
      findLanded: async (events) =>
        new Set([...(await known.findLanded(events)), ...heldAmong(worker().states, events)]),
      now: () => Date.now(),
    }),
    sample: createSampleStage({
      profile: env.SERVICE_SAMPLING_PROFILE,
      enabled: env.SERVICE_SAMPLING_ENABLED,
      slowMs: env.SERVICE_SAMPLING_SLOW_MS,
    }),
    meter: createMeterStage(),
  };
}

/** Whether tail sampling holds anything: where nothing is thinned out, nothing waits. */
const holds = ({ SERVICE_SAMPLING_TAIL, SERVICE_SAMPLING_ENABLED, SERVICE_SAMPLING_PROFILE }: Env): boolean =>
  SERVICE_SAMPLING_TAIL && SERVICE_SAMPLING_ENABLED && PROFILE_RATE[SERVICE_SAMPLING_PROFILE] < 1;

function createTail(env: Env): TailSampler | null {
  if (!holds(env)) return null;
  return new TailSampler({
    slots: env.SERVICE_SAMPLING_BUFFER_SLOTS,
    bytes: LIMITS.held_bytes_max,
    traceBytes: LIMITS.held_trace_bytes_max,
    read: { events: LIMITS.held_read_events_max, bytes: LIMITS.held_read_bytes_max },
    holdMs: LIMITS.held_idles_max * Math.max(env.SERVICE_TRACE_GRACE_MS, env.SERVICE_TRACE_IDLE_MS),
    slowMs: env.SERVICE_SAMPLING_SLOW_MS,
  });
}

/** Wires the way from the log to the store. Nothing runs before its parts are started. */
export async function openLanding(parts: LandingParts): Promise<Landing> {
  const {
    env,
    logger,
    log,
    clickhouse,
    store,
    sync,
    policies,
    judges,
    budgetRecords,
    partitions,
    logBase,
    workerId,
    metricsUrl,
  } = parts;
  const windowMs = env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;
  const publisher = createPublisher(log, logger, {
    now: () => Date.now(),
    onTold,
    onLetterLost: () => {
      metrics.deadLettersLostTotal.inc();
    },
  });
  const known = new KnownRows(clickhouse);
  const topology = createTopology(parts, known, () => worker);
  const ownership = new Ownership({
    nc: log.nc,
    kv: await log.bucket('partitions'),
    workerId,
    partitions,
    metricsUrl,
    isUp: parts.isUp,
    epochBase: parts.epochBase,
    log: logger,
    acquire: (records) => untilDone(logger, 'bringing partitions up', () => bringUp(records)),
    release: (held) => worker.release(held),
    lose: (partition) => {
      worker.lose(partition);
    },
  });
  const lander = new Lander({
    store,
    workerId,
    log: logger,
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
  const activity = new AgentActivity((heard) => store.writeActivity(heard));
  const reader: LogReader = new LogReader({
    js: log.js,
    log: logger,
    onMessage: () => {
      worker.wake();
    },
  });
  const budgets = await openBudgets({
    log,
    logger,
    clickhouse,
    policies,
    isLeader: () => ownership.isLeader,
    records: budgetRecords,
    onTold,
  });
  const judged = new ClickHouseJudgedStore(clickhouse);
  const patiently = <T>(read: () => Promise<T>): Promise<T> => untilDone(logger, 'reading traces to be judged', read);
  const scoring: ScoringDeps = {
    judgesOf: judges.of,
    store: {
      spans: (partition, refs) => patiently(() => judged.spans(partition, refs)),
      texts: (partition, refs, places) => patiently(() => judged.texts(partition, refs, places)),
      judgements: (partition, refs) => patiently(() => judged.judgements(partition, refs)),
    },
    time: new OrgTime(),
    runner: parts.patterns,
    throttle: new LiveTaskThrottle(),
    now: () => Date.now(),
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
  const worker: Worker = new Worker({
    reader,
    prepare: {
      topology,
      stages: createStageRunner(observer, logger),
      tail: createTail(env),
      observer,
      logBase,
      partitions,
      isBehind: () => reader.lag > 0,
      textDays: (org_id) => parts.retention.of(org_id).telemetry_events.full_prompt_response_days,
      isDeleted: (org_id) => parts.deletions.isRunning(org_id),
      findTraces: (partition, traces) =>
        untilDone(logger, 'looking up traces', () => known.findTraces(partition, traces)),
      findCorrections: (partition, ids) =>
        untilDone(logger, 'looking up corrections', () => known.findCorrections(partition, ids)),
      judge: (partition, traces) => scoreTraces(scoring, partition, traces),
      now: () => Date.now(),
      yield: () => new Promise((resolve) => setImmediate(resolve)),
    },
    lander,
    log: logger,
    isOwner: (partition) => ownership.isOwner(partition),
    bury: (casualties) => publisher.bury(casualties),
    tell: (events) => publisher.tell(events),
    hand: (tasks) => publisher.hand(tasks),
    landed: (prepared) => {
      activity.note(prepared.usage);
      budgets.landed(prepared);
    },
    sync: async () => {
      await activity.write();
      await sync();
    },
    checkpoint: (partition, settled, completed) => ownership.checkpoint(partition, settled, completed),
  });
  async function bringUp(records: PartitionRecord[]): Promise<void> {
    // Tried again after a failure, it leaves alone what is up already: that state is ahead of what its record says.
    const mine = records.filter(
      ({ partition, epoch }) => ownership.isOwner(partition) && worker.states.get(partition)?.epoch !== epoch,
    );
    await store.fence(mine.map((record) => [record.partition, record.epoch] as const));
    for (const record of mine) {
      const memory = emptyMemory(windowMs, Math.ceil(LIMITS.dedupe_ids_exact_max / partitions));
      const history = await store.partitionHistory(record, { logBase, windowMs, tail: holds(env) }, memory);
      const limits = {
        graceMs: env.SERVICE_TRACE_GRACE_MS,
        idleMs: env.SERVICE_TRACE_IDLE_MS,
        openMax: Math.ceil(LIMITS.open_traces_max / partitions),
        doneMax: Math.ceil(LIMITS.done_traces_max / partitions),
      };
      const inputs = new JudgedInputs(
        (org_id) => judges.of(org_id) !== null,
        Math.ceil(LIMITS.judged_bytes_max / partitions),
      );
      const state = rebuild(record, history, memory, { logBase, limits, inputs, now: Date.now() });
      if (ownership.epochOf(record.partition) === record.epoch) worker.add(state);
    }
  }
  const mover = new TextMover({
    store,
    workerId,
    log: logger,
    isLeader: () => ownership.isLeader,
    sync,
    observe: (waiting, moved, seconds) => {
      metrics.pipelineTextsWaiting.set(waiting);
      if (moved === 0) return;
      metrics.clickhouseInsertSeconds.observe({ table: 'span_texts' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'span_texts' }, moved);
    },
  });
  return { ownership, worker, mover, reader, budgets };
}

/** Shows how far the worker is, once a second. */
export function startGauges(
  { worker, reader, budgets }: Landing,
  jobs: { overdue: () => Map<string, number> },
): NodeJS.Timeout {
  const lag = new Lag();
  return setInterval(() => {
    const states = [...worker.states.values()];
    budgets.progress(
      states.map((state) => ({ ...state, behind: reader.lag > 0 || state.read_through < state.taken_through })),
    );
    metrics.pipelinePartitionsOwned.set(states.length);
    metrics.pipelineOpenTraces.set(states.reduce((sum, { book }) => sum + book.openCount, 0));
    metrics.samplingHeldTraces.set(states.reduce((sum, { tail }) => sum + tail.size, 0));
    metrics.samplingHeldBytes.set(states.reduce((sum, { tail }) => sum + tail.bytes, 0));
    metrics.pipelineDedupeIds.set(states.reduce((sum, { window }) => sum + window.size, 0));
    metrics.pipelineDedupeBytes.set(states.reduce((sum, { window }) => sum + window.bytes, 0));
    metrics.pipelineLagMessages.set(reader.lag);
    for (const [job, seconds] of jobs.overdue()) metrics.jobOverdueSeconds.set({ job }, seconds);
    const behind = reader.lag > 0 || states.some((state) => state.landed_through < state.prepared_through);
    const landed_at = Math.max(0, ...states.map((state) => state.landed_at));
    metrics.pipelineLagSeconds.set(lag.seconds({ now: Date.now(), behind, landed_at }));
  }, GAUGES_MS);
}
