// The bulk lane: lands rows beside the landings of the batches, in their order, one landing at a time.
// Takes units of rows; resolves each once its rows are in the store or refused.
//
// Units that wait land together, up to the bytes of a batch, because a landing costs about the same
// however few its rows. The caller bounds what waits.
import { LIMITS } from '../limits.ts';
import { landingDelay } from './landing_pace.ts';
import { emptyUnit, type Lander, type LandingUnit, type RefusedRow } from './lander.ts';

interface Waiting {
  rows: LandingUnit;
  bytes: number;
  resolve: (refused: RefusedRow[]) => void;
  reject: (error: unknown) => void;
}

export interface BulkLaneDeps {
  lander: Pick<Lander, 'land'>;
  /** Milliseconds of a monotonic clock. */
  now: () => number;
  /** Resolves after some milliseconds. */
  sleep: (ms: number) => Promise<void>;
}

export class BulkLane {
  readonly #deps: BulkLaneDeps;
  #waiting: Waiting[] = [];
  #bytes = 0;
  #running = false;

  constructor(deps: BulkLaneDeps) {
    this.#deps = deps;
  }

  /** True if no unit waits or lands. */
  get isEmpty(): boolean {
    return this.#bytes === 0;
  }

  /**
   * Lands a unit after those before it.
   * @param bytes what it keeps in memory, at least 1
   * @returns the rows that the store refused, of this unit or of those that landed with it
   */
  land(rows: LandingUnit, bytes: number): Promise<RefusedRow[]> {
    this.#bytes += bytes;
    const { promise, resolve, reject } = Promise.withResolvers<RefusedRow[]>();
    this.#waiting.push({ rows, bytes, resolve, reject });
    if (!this.#running) void this.#run();
    return promise;
  }

  async #run(): Promise<void> {
    this.#running = true;
    let [began, took] = [-Infinity, 0];
    for (;;) {
      for (let delay = this.#delay(began, took); delay > 0; delay = this.#delay(began, took))
        await this.#deps.sleep(delay);
      const units = this.#take();
      if (units.length === 0) break;
      began = this.#deps.now();
      await this.#landAll(units);
      took = this.#deps.now() - began;
    }
    this.#running = false;
  }

  #delay(began: number, took: number): number {
    if (this.#waiting.length === 0) return 0;
    const buffered_bytes = this.#waiting.reduce((sum, { bytes }) => sum + bytes, 0);
    return landingDelay({ since_ms: this.#deps.now() - began, took_ms: took, buffered_bytes });
  }

  /** Takes units from the front: at least one if there is one, more up to the bytes of a batch. */
  #take(): Waiting[] {
    let count = 0;
    let sum = 0;
    for (const { bytes } of this.#waiting) {
      if (count > 0 && sum + bytes > LIMITS.batch_bytes_max) break;
      count += 1;
      sum += bytes;
    }
    return this.#waiting.splice(0, count);
  }

  async #landAll(units: readonly Waiting[]): Promise<void> {
    try {
      let refused = await this.#deps.lander.land(joined(units.map(({ rows }) => rows)), 'behind');
      for (const { resolve } of units) {
        resolve(refused);
        refused = [];
      }
    } catch (error) {
      for (const { reject } of units) reject(error);
    }
    for (const { bytes } of units) this.#bytes -= bytes;
  }
}

/** Returns the rows of several units as one, in their order. */
function joined(units: readonly LandingUnit[]): LandingUnit {
  const [first, ...others] = units;
  if (first !== undefined && others.length === 0) return first;
  const all = emptyUnit();
  for (const unit of units) {
    all.spans.push(...unit.spans);
    all.span_texts_recent.push(...unit.span_texts_recent);
    all.traces.push(...unit.traces);
    all.usage_events.push(...unit.usage_events);
    all.judge_scores.push(...unit.judge_scores);
    all.blocks.push(...unit.blocks);
  }
  return all;
}
