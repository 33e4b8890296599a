// Tracks whether an API process that has just started knows how much use waits in the ingest log. That use is in no sum of the store
// yet. The process knows it once it has counted the log (backlog.ts) or once all of the log has landed, whichever comes first.
// Takes the end of the count and reports of landings; tells since when the process knows.
import type { Landing } from '../../../schemas/signals/landing_reports.ts';

/**
 * For this long after its start, a process admits nothing for an organization with a hard limit whose use it does not know. After that
 * (ClickHouse is unavailable for long) it decides with the use it knows of: ingest does not wait for ClickHouse.
 */
export const UNKNOWING_MS = 30_000;

export interface BeforeOptions {
  /** JetStream sequence of the newest message when this process began; 0: the log was empty. */
  newest: number;
  partitions: number;
  /** Called once, when this process knows what the log held. */
  onKnown: () => void;
}

export class Before {
  readonly #newest: number;
  readonly #onKnown: () => void;
  readonly #missing: Set<number>;
  readonly #began = performance.now();
  readonly #known = Promise.withResolvers<undefined>();
  #knownAt: number | null = null;

  constructor({ newest, partitions, onKnown }: BeforeOptions) {
    this.#newest = newest;
    this.#onKnown = onKnown;
    this.#missing = new Set(Array.from({ length: partitions }, (_, partition) => partition));
    if (newest === 0) this.#end();
  }

  /** Resolves when this process knows what the log held; maybe never. */
  get known(): Promise<undefined> {
    return this.#known.promise;
  }

  /** Since when it knows, on the monotonic clock: together with sums that are read from the store after that, nothing is missing. Null: not yet. */
  get knownAt(): number | null {
    return this.#knownAt;
  }

  /** True once the process decides with the use it knows of, even if the log has not been counted. */
  get mayGuess(): boolean {
    return performance.now() - this.#began >= UNKNOWING_MS;
  }

  /** Takes reports of landings: what has landed is in the sums of the store. */
  heard(reports: readonly Pick<Landing, 'partition' | 'read_through' | 'behind'>[]): void {
    if (this.#knownAt !== null) return;
    for (const { partition, read_through, behind } of reports)
      if (!behind || read_through >= this.#newest) this.#missing.delete(partition);
    if (this.#missing.size === 0) this.counted();
  }

  /** Everything that the log held has been counted. */
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
