// Wiring of the preparation of batches (worker/prepare.ts): the stages, tail sampling, judging by
// rules, and the look-ups that they make in the store.
import { OrgTime } from '../../ops/platform/org_time.ts';
import { createPriceBook } from '../domain/pricing/pricing.ts';
import { PROFILE_RATE } from '../domain/traces/keep_rules.ts';
import { ClickHouseJudgedStore } from '../judging/rule_inputs_store.ts';
import { LiveTaskThrottle } from '../judging/live_task_throttle.ts';
import { type ScoringDeps, scoreTraces } from '../judging/rule_scores.ts';
import { LandingLanes } from '../landing/landing_lanes.ts';
import { LIMITS } from '../limits.ts';
import { IdWindow } from '../stages/id_window.ts';
import { createTopology, type Topology } from '../topology.ts';
import { bufferedAmong, TailSampler } from '../traces/tail_sampling.ts';
import type { PrepareDeps } from '../worker/prepare.ts';
import { createStageRunner } from '../worker/stage_runner.ts';
import { stageMetrics } from './stage_metrics.ts';
import type { LogReaders } from '../worker/log_readers.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { RowsOfShards } from '../worker/earlier_shards.ts';
import type { DataPlaneParts } from './data_plane.ts';
import type { ShardParts } from './shard_plane.ts';
import { untilDone } from './parts.ts';
import type { Platform } from './platform.ts';

const HOUR_MS = 3_600_000;

/**
 * Returns the dependencies of worker/prepare.ts.
 * @param known look-ups in the shards of the partitions
 */
export function openPreparation(
  parts: ShardParts,
  known: RowsOfShards,
  states: ReadonlyMap<number, PartitionState>,
  reader: LogReaders,
): PrepareDeps {
  const { platform, storeUp, retention } = parts;
  const { logger } = platform;
  const scoring = openScoring(parts);
  const tail = createTailSampler(parts);
  return {
    topology: openTopology(parts, states, known),
    runner: createStageRunner(stageMetrics, logger),
    tail,
    lanes: tail === null ? new LandingLanes() : null,
    observer: stageMetrics,
    logBase: storeUp.logBase,
    partitions: platform.partitions,
    streams: () => reader.streams,
    textDays: (org_id) => retention.of(org_id).telemetry_events.full_prompt_response_days,
    isDeleted: (org_id) => platform.deletions.isRunning(org_id),
    findTraces: (partition, traces) =>
      untilDone(logger, 'looking up traces', () => known.findTraces(partition, traces)),
    findCorrections: (partition, ids) =>
      untilDone(logger, 'looking up corrections', () => known.findCorrections(partition, ids)),
    judge: (traces) => scoreTraces(scoring, traces),
    now: () => Date.now(),
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
}

function openTopology(
  { platform, settings }: DataPlaneParts,
  states: ReadonlyMap<number, PartitionState>,
  known: RowsOfShards,
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
      // If the worker loses a partition in the middle of a batch, the partition has no window any
      // more, and its rows are not written.
      windowOf: (partition) => states.get(partition)?.window ?? orphan,
      forgottenOf: (partition) => states.get(partition)?.forgotten ?? null,
      findLanded: async (events) => new Set([...(await known.findLanded(events)), ...bufferedAmong(states, events)]),
      now: () => Date.now(),
    },
    match: {
      partitionOf: (partition) => states.get(partition) ?? null,
      findCalls: (traces) => untilDone(platform.logger, 'looking up calls', () => known.findCalls(traces)),
    },
    sample: {
      profile: env.SERVICE_SAMPLING_PROFILE,
      enabled: env.SERVICE_SAMPLING_ENABLED,
      slowMs: env.SERVICE_SAMPLING_SLOW_MS,
    },
  });
}

export const windowMsOf = ({ env }: Platform): number => env.SERVICE_DEDUP_WINDOW_HOURS * HOUR_MS;

/**
 * Returns false if the sampling profile stores every event in full: tail sampling then has nothing
 * to decide.
 */
export const usesTailSampling = ({ env }: Platform): boolean =>
  env.SERVICE_SAMPLING_TAIL && env.SERVICE_SAMPLING_ENABLED && PROFILE_RATE[env.SERVICE_SAMPLING_PROFILE] < 1;

function createTailSampler({ platform }: DataPlaneParts): TailSampler | null {
  const { env } = platform;
  if (!usesTailSampling(platform)) return null;
  return new TailSampler({
    slots: env.SERVICE_SAMPLING_BUFFER_SLOTS,
    bytes: LIMITS.tail_bytes_max,
    traceBytes: LIMITS.tail_trace_bytes_max,
    read: { events: LIMITS.tail_replay_events_max, bytes: LIMITS.tail_replay_bytes_max },
    bufferMs: LIMITS.tail_idles_max * Math.max(env.SERVICE_TRACE_GRACE_MS, env.SERVICE_TRACE_IDLE_MS),
    slowMs: env.SERVICE_SAMPLING_SLOW_MS,
  });
}

function openScoring({ platform, settings, up }: ShardParts): ScoringDeps {
  const { logger, patterns, store } = platform;
  const ofShard = new ClickHouseJudgedStore(up.shard.clickhouse);
  const ofAll = new ClickHouseJudgedStore(store.clickhouse);
  // The spans of a trace are in several shards once its partition has moved.
  const judgedOf = (refs: readonly { partition: number }[]) =>
    refs.some(({ partition }) => store.before(partition).length > 0) ? ofAll : ofShard;
  const patiently = <T>(read: () => Promise<T>): Promise<T> => untilDone(logger, 'reading traces to be judged', read);
  return {
    judgesOf: settings.judges.of,
    store: {
      spans: (refs) => patiently(() => judgedOf(refs).spans(refs)),
      texts: (refs, places) => patiently(() => judgedOf(refs).texts(refs, places)),
      judgements: (refs) => patiently(() => judgedOf(refs).judgements(refs)),
    },
    time: new OrgTime(),
    runner: patterns,
    throttle: new LiveTaskThrottle(),
    now: () => Date.now(),
    yield: () => new Promise((resolve) => setImmediate(resolve)),
  };
}
