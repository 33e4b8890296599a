// Corrects the rows of spans that a record of the gateway replaced after they had landed (ADR 51). Their
// usage and their traces were corrected in the landing of that record; until this has run, a tree shows
// tokens and cost of both.
//
// The store says what is left to do, so nothing is remembered: the first run looks back for as long as
// a worker recognizes repeats, and a run may be repeated by any worker.
import type { Logger } from '../../ops/platform/logger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { markReplaced, readReplaced, readReplacing, REPLACED_MAX } from '../../sql/stores/replaced_spans.ts';
import { backoffMs } from '../queues/backoff.ts';

/** Time from a landing to a run, in which further landings join it. */
const PAUSE_MS = 500;
/** Slack for spans that land later than others that were received after them. */
const OVERLAP_MS = 60_000;

interface ReplacedSpansOptions {
  clickhouse: ClickHouse;
  /** Returns other shards that may have rows which a span here replaces: those in which its partitions were before. */
  earlier: () => readonly ClickHouse[];
  logger: Logger;
  /** How far back the first run looks, in milliseconds. */
  windowMs: number;
  now: () => number;
}

export class ReplacedSpans {
  readonly #options: ReplacedSpansOptions;
  /** Time up to which every replacing span is known to be done, in milliseconds. */
  #doneUntil: number;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #asked = false;
  #failures = 0;
  #stopped = false;

  constructor(options: ReplacedSpansOptions) {
    this.#options = options;
    this.#doneUntil = options.now() - options.windowMs;
  }

  /** Runs soon after a landing that replaces spans. */
  wake(): void {
    this.#asked = true;
    if (this.#stopped || this.#timer !== null || this.#running !== null) return;
    this.#timer = setTimeout(
      () => {
        this.#timer = null;
        this.#running = this.#run().finally(() => {
          this.#running = null;
          if (this.#asked) this.wake();
        });
      },
      Math.max(PAUSE_MS, this.#failures === 0 ? 0 : backoffMs(this.#failures)),
    );
  }

  /** Looks back over the whole window again, after partitions of another worker were taken over. */
  takeOver(): void {
    this.#doneUntil = Math.min(this.#doneUntil, this.#options.now() - this.#options.windowMs);
    this.wake();
  }

  /** Resolves when nothing runs any more. What is left is done by the next worker. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    await this.#running;
  }

  async #run(): Promise<void> {
    this.#asked = false;
    const { clickhouse, earlier, logger, now } = this.#options;
    const began = now();
    try {
      const replacing = await readReplacing(clickhouse, this.#doneUntil);
      if (replacing.length > 0)
        for (const shard of [clickhouse, ...earlier()]) {
          const rows = await readReplaced(shard, replacing);
          if (rows.length > 0) await markReplaced(shard, rows);
        }
      const isWhole = replacing.length < REPLACED_MAX;
      this.#doneUntil = isWhole
        ? began - OVERLAP_MS
        : Math.max(this.#doneUntil + 1, replacing.at(-1)?.received_ms ?? 0);
      this.#asked ||= !isWhole;
      this.#failures = 0;
    } catch (error) {
      this.#failures += 1;
      this.#asked = true;
      logger.warn({ err: error }, 'replaced spans could not be corrected; trying again');
    }
  }
}
