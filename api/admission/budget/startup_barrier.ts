// Tracks whether an API process that has just started knows how much use waits in the ingest log,
// which no sum of the store includes yet. The process knows it once it has counted the log
// (backlog.ts) or once all of that log has landed, whichever comes first. Takes the end of the
// count and reports of landings; returns since when the process knows.
import type { LandingReport } from '../../../schemas/signals/landing_reports.ts';

/**
 * For this long after its start, a process admits nothing for an organization with a hard limit
 * whose use it does not know. After that (ClickHouse has been unavailable for long) it decides by
 * the use that it knows of: ingest does not wait for ClickHouse.
 */
export const UNKNOWING_MS = 30_000;

export interface StartupBarrierOptions {
  /**
   * Position of the newest message when this process started, by partition; none for a partition
   * whose stream was empty.
   */
  newest: ReadonlyMap<number, number>;
  /** Called once, when this process knows what the log held. */
  onKnown: () => void;
}

export class StartupBarrier {
  readonly #newest: ReadonlyMap<number, number>;
  readonly #onKnown: () => void;
  readonly #missing: Set<number>;
  readonly #began = performance.now();
  readonly #known = Promise.withResolvers<undefined>();
  #knownAt: number | null = null;

  constructor({ newest, onKnown }: StartupBarrierOptions) {
    this.#newest = newest;
    this.#onKnown = onKnown;
    this.#missing = new Set(newest.keys());
    if (newest.size === 0) this.#end();
  }

  /** Resolves when this process knows what the log held; possibly never. */
  get known(): Promise<undefined> {
    return this.#known.promise;
  }

  /**
   * Time since when the process knows, milliseconds of the monotonic clock: with sums read from the
   * store after that, no use is missing. Null: not yet.
   */
  get knownAt(): number | null {
    return this.#knownAt;
  }

  /**
   * True once the process decides by the use that it knows of, even if the log has not been
   * counted.
   */
  get mayGuess(): boolean {
    return performance.now() - this.#began >= UNKNOWING_MS;
  }

  /** Takes reports of landings: the sums of the store include what has landed. */
  heard(reports: readonly Pick<LandingReport, 'partition' | 'read_through' | 'behind'>[]): void {
    if (this.#knownAt !== null) return;
    for (const { partition, read_through, behind } of reports)
      if (!behind || read_through >= (this.#newest.get(partition) ?? 0)) this.#missing.delete(partition);
    if (this.#missing.size === 0) this.counted();
  }

  /** Takes the end of the count. */
  counted(): void {
    if (this.#knownAt !== null) return;
    this.#end();
    this.#onKnown();
  }

  #end(): void {
    this.#knownAt = performance.now();
    this.#known.resolve(undefined);
  }
}
