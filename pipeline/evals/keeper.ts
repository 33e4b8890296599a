// Recovers evals that no worker works on: chunks whose message was lost, and ends that a crash
// interrupted. It compares the records with the state of the queue every `intervalMs`, enqueues
// chunks again, and ends and settles evals. Only the leader acts.
import { queueChunks, laneOf } from '../../ops/exchange/eval_queue.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { JUDGING_STREAM } from '../../schemas/streams.ts';
import type { EvalRecord } from '../../schemas/records/eval.ts';
import { isThrough, resentChunks, SILENT_MS } from '../domain/evals/chunks.ts';
import type { EvalFinisher } from './finish.ts';
import { type EvalRecords, keyOf } from './records.ts';

export type Lane = ReturnType<typeof laneOf>;

export interface EvalKeeperOptions {
  log: Log;
  logger: Logger;
  records: EvalRecords;
  finisher: EvalFinisher;
  /** Name of the durable consumer of each lane. */
  queues: Readonly<Record<Lane, string>>;
  isLeader: () => boolean;
  /** Interval between two looks, milliseconds. */
  intervalMs: number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

export class EvalKeeper {
  readonly #options: EvalKeeperOptions;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> | null = null;
  /**
   * Revision at the last look of evals that run with an idle lane, or have ended and are not
   * settled, by key.
   */
  #waiting = new Map<string, number>();

  constructor(options: EvalKeeperOptions) {
    this.#options = options;
  }

  start(): void {
    this.#timer = setInterval(() => {
      this.#looking ??= this.#look().finally(() => {
        this.#looking = null;
      });
    }, this.#options.intervalMs);
  }

  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { records, logger, isLeader } = this.#options;
    const before = this.#waiting;
    this.#waiting = new Map();
    if (!isLeader()) return;
    try {
      const unfinished = [...records.entries()].filter(([, { value }]) => value.status === 'running' || !value.settled);
      if (unfinished.length === 0) return;
      const idle = { eval: await this.#isIdle('eval'), dataset: await this.#isIdle('dataset') };
      for (const [key, { value, revision }] of unfinished) {
        // A worker that has the eval gets the time of one look, so that no work is repeated
        // needlessly.
        const stood = before.get(key) === revision;
        this.#waiting.set(key, revision);
        await this.#help(value, stood && idle[laneOf(value)], stood);
      }
    } catch (error) {
      logger.warn({ err: error }, 'looking after evals failed; trying again');
    }
  }

  async #help(record: EvalRecord, idle: boolean, stood: boolean): Promise<void> {
    const { records, finisher, log, logger, now } = this.#options;
    if (record.status !== 'running') {
      if (stood) await finisher.settle(record);
      return;
    }
    if (isThrough(record)) {
      if (stood) await finisher.end(record);
      return;
    }
    const at = now();
    const before = idle ? at : at - SILENT_MS;
    if (resentChunks(record.progress, before, at) === null) return;
    const sent = await records.change(keyOf(record), (current) => {
      const progress = current.status === 'running' ? resentChunks(current.progress, before, at) : null;
      return progress === null ? null : { ...current, progress };
    });
    if (sent === null) return;
    logger.warn(
      { eval_id: record.eval_id, chunks: sent.progress.open.map(({ chunk }) => chunk) },
      'chunks of an eval are enqueued again',
    );
    await queueChunks(
      log,
      sent,
      sent.progress.open.filter(({ sent_ms }) => sent_ms === at),
    );
  }

  /** Resolves with true when no message of a lane waits or is held by a worker. */
  async #isIdle(lane: Lane): Promise<boolean> {
    const { log, queues } = this.#options;
    const consumer = await log.jsm.consumers.info(JUDGING_STREAM, queues[lane]).catch(() => null);
    return consumer !== null && consumer.num_pending + consumer.num_ack_pending === 0;
  }
}
