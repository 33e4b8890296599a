// Assembles the evals of a worker: two lanes of the judging queue, one for rules over stored traces
// and one for everything that calls models, and the keeper, which recovers interrupted evals. All
// workers share both lanes.
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { JUDGING_STREAM, judgingSubject } from '../../schemas/streams.ts';
import { type JudgingTask, judgingTaskCodec } from '../../schemas/codec.ts';
import { evalKey } from '../../schemas/records/eval.ts';
import type { Policy } from '../../schemas/records/policy.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { type ScoreRow, writeScores } from '../../sql/stores/judge_scores.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { BatchConsumer, type BatchConsumerOptions } from '../queues/batch_consumer.ts';
import type { SpanDeps } from '../domain/decode/span.ts';
import type { Runner } from '../domain/patterns/bounds.ts';
import { publishJobEvent } from '../jobs/job_event.ts';
import type { LlmJudges } from '../judging/llm_judges.ts';
import type { RecordedCalls } from '../judging/llm_recorded_calls.ts';
import { EvalFinisher } from './finish.ts';
import { EvalKeeper, type Lane } from './keeper.ts';
import { llmJudgeOf } from './llm.ts';
import { EvalRecords } from './records.ts';
import { createItemRunner } from './run_items.ts';
import { createTraceScorer } from './score_traces.ts';
import { EvalWorker } from './worker.ts';

/** Names of the durable consumers, their dead letters and their metrics. */
const QUEUES: Readonly<Record<Lane, string>> = { eval: 'evals', dataset: 'model_evals' };
/** Maximum number of chunks that a worker holds of each lane. */
const HELD_MAX: Readonly<Record<Lane, number>> = { eval: 2, dataset: 8 };
/** Maximum number of chunks that all workers together hold or have waiting for a retry. */
const ACK_PENDING_MAX = 1024;
const HELD_BYTES_MAX = 4 * 1024 * 1024;
const RETRY: Readonly<Record<Lane, { firstMs: number; maxMs: number }>> = {
  eval: { firstMs: 250, maxMs: 5000 },
  dataset: { firstMs: 1000, maxMs: 60_000 },
};
/** Time after which the queue redelivers the chunks of a worker that died. */
const ACK_WAIT_MS = 10_000;
/** Interval at which the leader looks after evals. */
const LOOK_MS = 5000;

export interface EvalsOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  /** null when the worker has no upstream. */
  llm: { judges: Pick<LlmJudges, 'judge'>; calls: Pick<RecordedCalls, 'call'> } | null;
  /** Runs rules that would take long in this thread. */
  runner: Runner;
  /** Dependencies of the decoder that reads models' answers. */
  spans: SpanDeps;
  policyOf: (org_id: string) => Policy;
  isLeader: () => boolean;
  observe: BatchConsumerOptions<unknown>['observe'];
  /** Receives the number of scores that were stored. */
  onScored: (verdict: ScoreRow['verdict'], count: number) => void;
  /** Called for each platform event that was published. */
  onPublished: (event: string) => void;
  /** Milliseconds since the epoch. */
  now: () => number;
  ackWaitMs?: number;
  lookMs?: number;
}

export interface Evals {
  start: () => void;
  /** Resolves when the chunks under way have ended, or after a bounded wait. */
  stop: () => Promise<void>;
  /** Number of running evals. */
  running: () => number;
}

/** Resolves when every record of an eval has been loaded. */
export async function openEvals(options: EvalsOptions): Promise<Evals> {
  const { log, logger, clickhouse, llm, now } = options;
  const onProblem = (problem: string, cause: unknown): void => {
    logger.warn({ err: cause }, problem);
  };
  const records = await EvalRecords.open(log, onProblem);
  const finisher = new EvalFinisher({
    records,
    clickhouse,
    logger,
    regressionDrop: (org_id) => options.policyOf(org_id).regression_drop,
    publish: async (event) => {
      await publishJobEvent(log, event);
      options.onPublished(event.event);
    },
    now,
  });
  const scoring = {
    records,
    store: storeScores(clickhouse, records, options.onScored),
    clickhouse,
    now,
    runner: options.runner,
    llmJudge: llmJudgeOf.bind(null, llm?.judges ?? null),
  };
  const scoreTraces = createTraceScorer(scoring);
  const runItems = createItemRunner({ ...scoring, calls: llm?.calls ?? null, spans: options.spans });
  const worker = new EvalWorker({
    log,
    records,
    finisher,
    score: (record, chunk, signal) => (record.dataset === null ? scoreTraces : runItems)(record, chunk, signal),
    now,
    onProblem,
  });
  const stopping = new AbortController();
  const queues = (['eval', 'dataset'] as const).map((lane) =>
    laneQueue(options, lane, (task) => worker.work(task, stopping.signal)),
  );
  const keeper = new EvalKeeper({
    log,
    logger,
    records,
    finisher,
    queues: QUEUES,
    isLeader: options.isLeader,
    intervalMs: options.lookMs ?? LOOK_MS,
    now,
  });
  return {
    start: () => {
      for (const queue of queues) queue.start();
      keeper.start();
    },
    stop: async () => {
      const ended = Promise.all(queues.map((queue) => queue.stop()));
      stopping.abort(new Error('the worker is ending'));
      await ended;
      await keeper.stop();
      records.close();
    },
    running: () => [...records.all()].filter(({ status }) => status === 'running').length,
  };
}

/**
 * Returns a function that stores rows of one eval and counts them. It stores none once the bucket
 * says that the eval was cancelled, even if this worker's watch has not seen it.
 */
function storeScores(
  clickhouse: ClickHouse,
  records: Pick<EvalRecords, 'isRunning'>,
  onScored: EvalsOptions['onScored'],
): (rows: readonly ScoreRow[]) => Promise<void> {
  return async (rows) => {
    const [first] = rows;
    if (first === undefined || !(await records.isRunning(evalKey(first.org_id, first.eval_id)))) return;
    await writeScores(clickhouse, rows);
    for (const [verdict, own] of Map.groupBy(rows, (row) => row.verdict)) onScored(verdict, own.length);
  };
}

function laneQueue(
  { log, logger, observe, now, ackWaitMs = ACK_WAIT_MS }: EvalsOptions,
  lane: Lane,
  work: (task: JudgingTask) => Promise<void>,
): BatchConsumer<JudgingTask> {
  return new BatchConsumer<JudgingTask>({
    log,
    logger,
    queue: QUEUES[lane],
    stream: JUDGING_STREAM,
    subject: judgingSubject(lane),
    codec: judgingTaskCodec,
    handle: async (batch) => {
      for (const { value } of batch) await work(value);
    },
    deadLetter: createDeadLetterStore(log, now),
    observe,
    messagesMax: HELD_MAX[lane],
    bytesMax: HELD_BYTES_MAX,
    batchMax: 1,
    gatherMs: 0,
    handlersMax: HELD_MAX[lane],
    ackPendingMax: ACK_PENDING_MAX,
    retry: RETRY[lane],
    ackWaitMs,
    now,
  });
}
