// What an API process does not know when it begins: how much of what organizations have used waits in the log, and is in no sum of the
// store. It knows once it has counted the log (backlog.ts), or once all of it has landed, whichever comes first.
// In: the end of the count, reports of landings. Out: since when the process knows.
import type { Landing } from '../../../ops/exchange/landing_reports.ts';

/**
 * For so long after it began, a process admits nothing at hard limits that it knows too little of. After that (the store is away for
 * long) it decides by what it knows: ingest does not wait for ClickHouse.
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

  /** Whether this process decides by what it knows, however little that is. */
  get mayGuess(): boolean {
    return performance.now() - this.#began >= UNKNOWING_MS;
  }

  /** Takes reports of landings: what has landed is in the sums of the store. */
  heard(reports: readonly Pick<Landing, 'partition' | 'read_through' | 'behind'>[]): void {
    if (this.#knownAt !== null) return;
    for (const { partition, read_through, behind } of reports) if (!behind || read_through >= this.#newest) this.#missing.delete(partition);
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
