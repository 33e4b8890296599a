// Carries out chunks of evals. It takes tasks that name a chunk, stores rows of scores, marks the
// chunk done in the eval's record, and enqueues the next one; after the last one it ends the eval.
// Guarantees: a chunk runs at least once, and a trace is scored once, as one that has a score is
// not judged again. Whatever step a worker dies after, the task is redelivered and continues from
// there. A chunk of a cancelled eval is aborted within milliseconds with its calls of models, and
// stores nothing.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { queueChunks } from '../../ops/exchange/eval_queue.ts';
import { UpstreamFailed } from '../../ops/platform/llm/upstream.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { JudgingTask } from '../../schemas/codec.ts';
import { evalKey, type EvalRecord } from '../../schemas/records/eval.ts';
import { finishedChunk, heardChunk, isThrough, stoppedChunk } from '../domain/evals/chunks.ts';
import type { EvalFinisher } from './finish.ts';
import { EvalFailed, type EvalRecords, keyOf } from './records.ts';

/** Interval at which the record is updated while a worker works on a chunk. */
const HEARD_MS = 60_000;

const ERROR_CHARS_MAX = 1000;
/** Time for which a chunk is retried before its eval fails. */
const PATIENCE_MS = 3_600_000;

/**
 * Scores a chunk and resolves when its rows are stored.
 * @throws EvalFailed when the eval cannot go on; Error when the chunk is to be retried
 */
export type ScoreChunk = (record: EvalRecord, chunk: number, signal: AbortSignal) => Promise<void>;

export interface EvalWorkerOptions {
  log: Log;
  records: EvalRecords;
  finisher: EvalFinisher;
  score: ScoreChunk;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

export class EvalWorker {
  readonly #options: EvalWorkerOptions;
  /** Ids of tasks under way: a task that is redelivered meanwhile runs once. */
  readonly #underWay = new Set<string>();

  constructor(options: EvalWorkerOptions) {
    this.#options = options;
  }

  /**
   * Carries out one task.
   * @throws Error when a store is unavailable, and the task is to be retried
   */
  async work({ org_id, eval_id, chunk }: JudgingTask, signal: AbortSignal): Promise<void> {
    const { records, finisher, log } = this.#options;
    const record = await records.read(evalKey(org_id, eval_id));
    if (record === null) return;
    if (record.status === 'cancelled') {
      await this.#done(record, chunk, null);
      return;
    }
    if (record.status !== 'running') {
      await finisher.settle(record);
      return;
    }
    if (!record.progress.open.some((one) => one.chunk === chunk)) {
      // The chunk was done before; the worker that did it may have died before it enqueued the next
      // one.
      await queueChunks(log, record);
      if (isThrough(record)) await finisher.end(record);
      return;
    }
    const id = `${eval_id}.${chunk}`;
    if (this.#underWay.has(id)) return;
    this.#underWay.add(id);
    try {
      // When the eval cannot go on, its other chunks are only released.
      await this.#done(record, chunk, record.error ?? (await this.#score(record, chunk, signal)));
    } finally {
      this.#underWay.delete(id);
    }
  }

  /**
   * Resolves with null when the chunk is scored, otherwise with the reason why the eval cannot go
   * on.
   * @throws Error when the chunk is to be retried
   */
  async #score(record: EvalRecord, chunk: number, signal: AbortSignal): Promise<string | null> {
    const { records, score, now, onProblem } = this.#options;
    const ended = new AbortController();
    const unwatch = records.onEnd(record, () => {
      ended.abort(new Error('the eval was cancelled'));
    });
    const heard = setInterval(() => {
      this.#heard(record, chunk).catch((cause: unknown) => {
        onProblem('the record of an eval could not be updated while it is worked on', cause);
      });
    }, HEARD_MS);
    try {
      await score(record, chunk, AbortSignal.any([signal, ended.signal]));
      return null;
    } catch (error) {
      if (ended.signal.aborted) return null;
      const sent_ms = record.progress.open.find((one) => one.chunk === chunk)?.sent_ms ?? now();
      const why = failureOf(error, now() - sent_ms);
      if (why === null) throw error;
      onProblem('an eval cannot go on', error);
      return why.slice(0, ERROR_CHARS_MAX);
    } finally {
      unwatch();
      clearInterval(heard);
    }
  }

  /**
   * Marks a chunk done. For a cancelled eval it opens no further chunk, and the last chunk to close
   * settles the eval.
   */
  async #done(record: EvalRecord, chunk: number, why: string | null): Promise<void> {
    const { records, log, finisher, now } = this.#options;
    const known = { next_chunk: 0 };
    const after = await records.change(keyOf(record), (current) => {
      if (current.status === 'cancelled') {
        const progress = stoppedChunk(current.progress, chunk);
        return progress === null ? null : { ...current, progress };
      }
      if (current.status !== 'running') return null;
      known.next_chunk = current.progress.next_chunk;
      const error = current.error ?? why;
      const progress =
        error === null ? finishedChunk(current.progress, chunk, now()) : stoppedChunk(current.progress, chunk);
      return progress === null ? null : { ...current, error, progress };
    });
    if (after?.status === 'cancelled' && after.progress.open.length === 0) await finisher.settle(after);
    if (after?.status !== 'running') return;
    await queueChunks(
      log,
      after,
      after.progress.open.filter((one) => one.chunk >= known.next_chunk),
    );
    if (isThrough(after)) await finisher.end(after);
  }

  async #heard(record: EvalRecord, chunk: number): Promise<void> {
    const { records, now } = this.#options;
    await records.change(keyOf(record), (current) => {
      const progress = current.status === 'running' ? heardChunk(current.progress, chunk, now()) : null;
      return progress === null ? null : { ...current, progress };
    });
  }
}

/** Returns why an eval ends, in words for people; null while a retry may succeed. */
function failureOf(error: unknown, triedMs: number): string | null {
  if (error instanceof EvalFailed) return error.message;
  if (triedMs <= PATIENCE_MS) return null;
  return error instanceof UpstreamFailed ? error.message : 'some of its traces could not be judged for an hour';
}
