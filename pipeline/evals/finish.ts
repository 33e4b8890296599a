// Ends evals: it computes their numbers, publishes regressions, and deletes what only a running
// eval needs. Guarantees: an eval ends once, by one CAS write with its numbers; a regression is
// published under an id that follows from the eval's, so a repetition after a crash is the same
// event; a later call does what a crash left undone. A cancelled eval publishes nothing, and its
// numbers are final once no worker holds a chunk of it.
import type { Logger } from '../../ops/platform/logger.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readScoreStats } from '../../sql/stores/judge_scores.ts';
import { isThrough } from '../domain/evals/chunks.ts';
import { previousEval, type RegressionEvent, regressionOf } from '../domain/evals/regression.ts';
import { type EvalRecords, keyOf } from './records.ts';

export interface EvalFinisherOptions {
  records: EvalRecords;
  clickhouse: ClickHouse;
  logger: Logger;
  /** Returns the drop of the mean from which an organization is notified. */
  regressionDrop: (org_id: string) => number;
  /** Resolves when the event is stored in EVENTS. */
  publish: (event: RegressionEvent) => Promise<void>;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class EvalFinisher {
  readonly #options: EvalFinisherOptions;

  constructor(options: EvalFinisherOptions) {
    this.#options = options;
  }

  /**
   * Ends an eval that has nothing left to do: as complete, or as failed where it could not go on.
   * Its scores stay.
   */
  async end(record: EvalRecord): Promise<void> {
    const { records, clickhouse, logger, now } = this.#options;
    const { org_id, judge_id, eval_id } = record;
    const [stats] = await readScoreStats(clickhouse, { org_id, judge_id, eval_id });
    const ended_at = new Date(now()).toISOString();
    const ended = await records.change(keyOf(record), (current) => {
      if (current.status !== 'running' || !isThrough(current)) return null;
      const over: EvalRecord = {
        ...current,
        status: current.error === null ? 'complete' : 'failed',
        ended_at,
        stats: stats ?? null,
      };
      return over.status === 'complete' ? { ...over, previous: previousEval(records.all(), over, ended_at) } : over;
    });
    if (ended === null || ended.status === 'running') return;
    if (ended.ended_at === ended_at)
      logger.info({ org_id, eval_id, status: ended.status, reason: ended.error ?? undefined }, 'an eval has ended');
    await this.settle(ended);
  }

  /** Publishes a regression and cleans up after the end of an eval, unless that is done. */
  async settle(record: EvalRecord): Promise<void> {
    if (record.status === 'running' || record.settled) return;
    const { records, regressionDrop, publish } = this.#options;
    if (record.status === 'cancelled') {
      await this.#settleCancelled(record);
      return;
    }
    const regression = regressionOf(record, regressionDrop(record.org_id));
    if (regression !== null) await publish(regression);
    await records.forgetParts(record);
    await records.change(keyOf(record), (current) => (current.settled ? null : { ...current, settled: true }));
  }

  /**
   * Counts the scores of a cancelled eval and deletes what only a running eval needs. Requires that
   * no chunk is open.
   */
  async #settleCancelled(record: EvalRecord): Promise<void> {
    const { records, clickhouse } = this.#options;
    const { org_id, judge_id, eval_id } = record;
    const [stats] = await readScoreStats(clickhouse, { org_id, judge_id, eval_id });
    await records.forgetParts(record);
    await records.change(keyOf(record), (current) => {
      if (current.settled) return null;
      return { ...current, stats: stats ?? null, progress: { ...current.progress, open: [] }, settled: true };
    });
  }
}
