// What the log held when this process began. Nobody told it what is in there, and what has not landed is in no sum of the store: until
// all of it has landed, this process does not know what orgs have used. In: reports of landings. Out: since when it knows.
import type { Landing } from '../../ops/landings.ts';

/**
 * For so long after it began, a process lets nothing in at hard limits that it knows too little of. Beyond it (the store is away for
 * long, no worker runs) it decides by what it knows: ingest does not wait for ClickHouse.
 */
export const UNKNOWING_MS = 30_000;

export interface BeforeOptions {
  /** JetStream sequence of the newest message when this process began; 0: the log was empty. */
  newest: number;
  partitions: number;
  /** Told once, when all of it has landed. */
  onLanded: () => void;
}

export class Before {
  readonly #newest: number;
  readonly #onLanded: () => void;
  readonly #missing: Set<number>;
  readonly #began = performance.now();
  readonly #landed = Promise.withResolvers<undefined>();
  #landedAt: number | null = null;

  constructor({ newest, partitions, onLanded }: BeforeOptions) {
    this.#newest = newest;
    this.#onLanded = onLanded;
    this.#missing = new Set(Array.from({ length: partitions }, (_, partition) => partition));
    if (newest === 0) this.#end();
  }

  /** Resolves when all of it has landed; maybe never. */
  get landed(): Promise<undefined> {
    return this.#landed.promise;
  }

  /** When all of it had landed, on the monotonic clock: what is read from the store after that lacks nothing. Null: not yet. */
  get landedAt(): number | null {
    return this.#landedAt;
  }

  /** Whether this process decides by what it knows, however little that is. */
  get mayGuess(): boolean {
    return performance.now() - this.#began >= UNKNOWING_MS;
  }

  /** Hears of landings. */
  heard(reports: readonly Pick<Landing, 'partition' | 'read_through' | 'behind'>[]): void {
    if (this.#landedAt !== null) return;
    for (const { partition, read_through, behind } of reports) if (!behind || read_through >= this.#newest) this.#missing.delete(partition);
    if (this.#missing.size > 0) return;
    this.#end();
    this.#onLanded();
  }

  #end(): void {
    this.#landedAt = performance.now();
    this.#landed.resolve(undefined);
  }
}
