// Observes the service during a fault: acknowledgements, landed rows, lag, every few milliseconds.
import type { RunSql } from '../bench/store.ts';
import { lagMessages } from './checks.ts';
import { pause } from './client.ts';
import { type Takeover, watchTakeover } from './takeover.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';

export interface Times {
  /** Requests acknowledged from the strike until the fault was healed. */
  acknowledged_during: number;
  /**
   * Milliseconds from the strike to the next acknowledgement, and to the next landed rows; null
   * when there were none.
   */
  acknowledged_after_ms: number | null;
  landed_after_ms: number | null;
  /** How long the partitions of the workers that fell silent stayed without landings; null where none did. */
  takeover: Takeover | null;
  /** Longest time without an acknowledgement after the strike. */
  silent_ms: number;
  /** Milliseconds from the healing until the lag was 0; null when it never was. */
  no_lag_after_ms: number | null;
}

export interface WatchOptions {
  /** Addresses of all API processes. */
  urls: readonly string[];
  runSql: RunSql;
  log: Log;
  acknowledged: () => number;
  /** True if the worker that the fault strikes drains before it falls silent. */
  drains: boolean;
}

const LOOK_MS = 25;
const ROWS_LOOK_MS = 100;
const ANSWER_MS_MAX = 2000;

export class Watch {
  readonly #options: WatchOptions;
  #struckAt = 0;
  #healedAt = 0;
  #atStrike = 0;
  #atHealing = 0;
  #ended = false;
  #quiet = false;
  #acknowledgedAfter: number | null = null;
  #landedAfter: number | null = null;
  #takeover: Takeover | null = null;
  #noLagAfter: number | null = null;
  #silent = 0;
  #watching: Promise<unknown> = Promise.resolve();

  constructor(options: WatchOptions) {
    this.#options = options;
  }

  struck(): void {
    this.#struckAt = performance.now();
    this.#atStrike = this.#options.acknowledged();
    this.#watching = Promise.all([this.#watchAnswers(), this.#watchRows(), this.#watchPartitions()]);
  }

  healed(): void {
    this.#healedAt = performance.now();
    this.#atHealing = this.#options.acknowledged();
    this.#watching = Promise.all([this.#watching, this.#watchLag()]);
  }

  /** The load ends: missing acknowledgements no longer count. */
  quiet(): void {
    this.#quiet = true;
  }

  /** Resolves after an acknowledgement and landed rows, or when the time is over. */
  async moving(msMax: number): Promise<void> {
    await this.#until(() => this.#acknowledgedAfter !== null && this.#landedAfter !== null, msMax);
  }

  /** Waits until the lag was 0, at most `msMax`. */
  async end(msMax: number): Promise<Times> {
    await this.#until(() => this.#noLagAfter !== null, msMax);
    this.#ended = true;
    await this.#watching;
    return {
      acknowledged_during: this.#atHealing - this.#atStrike,
      acknowledged_after_ms: this.#acknowledgedAfter,
      landed_after_ms: this.#landedAfter,
      takeover: this.#takeover,
      silent_ms: this.#silent,
      no_lag_after_ms: this.#noLagAfter,
    };
  }

  async #until(holds: () => boolean, msMax: number): Promise<void> {
    const until = performance.now() + msMax;
    while (!holds() && performance.now() < until) await pause(LOOK_MS);
  }

  async #watchAnswers(): Promise<void> {
    let [seen, seenAt] = [this.#atStrike, this.#struckAt];
    while (!this.#ended && !this.#quiet) {
      const now = performance.now();
      const count = this.#options.acknowledged();
      if (count > seen) {
        this.#acknowledgedAfter ??= now - this.#struckAt;
        [seen, seenAt] = [count, now];
      } else this.#silent = Math.max(this.#silent, now - seenAt);
      await pause(LOOK_MS);
    }
  }

  async #watchRows(): Promise<void> {
    let before: number | null = null;
    while (!this.#ended && this.#landedAfter === null) {
      const rows = Number(await this.#bounded(this.#options.runSql('SELECT count() FROM spans')));
      if (!Number.isNaN(rows)) {
        before ??= rows;
        if (rows > before) this.#landedAfter = performance.now() - this.#struckAt;
      }
      await pause(ROWS_LOOK_MS);
    }
  }

  async #watchPartitions(): Promise<void> {
    this.#takeover = await watchTakeover(this.#options, () => this.#ended || this.#quiet);
  }

  async #watchLag(): Promise<void> {
    while (!this.#ended && this.#noLagAfter === null) {
      for (const url of this.#options.urls) {
        const lag = await this.#bounded(lagMessages(url));
        if (lag === 0) this.#noLagAfter ??= performance.now() - this.#healedAt;
      }
      await pause(LOOK_MS);
    }
  }

  /** Returns NaN when it fails or takes too long: the observed process may be gone or frozen. */
  async #bounded(look: Promise<string | number>): Promise<string | number> {
    return Promise.race([look.catch(() => NaN), pause(ANSWER_MS_MAX).then(() => NaN)]);
  }
}
