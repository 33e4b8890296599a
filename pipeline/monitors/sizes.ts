// Remembers how many variants one statement over the same rows may have. A statement that the store
// could not answer in its time or memory is asked again in halves, and the next runs begin with that
// size. Bounds: ROWS_MAX keys, each for KEPT_MS; a restart forgets them, which costs one run.
import { VARIANTS_MAX } from '../../sql/analytics/variants.ts';

const ROWS_MAX = 1000;
const KEPT_MS = 30 * 60_000;

export class StatementSizes {
  readonly #learned = new Map<string, { variants: number; until: number }>();

  /** Returns the largest number of variants of a statement over these rows. @param now milliseconds */
  of(rows: string, now: number): number {
    const learned = this.#learned.get(rows);
    return learned === undefined || learned.until <= now ? VARIANTS_MAX : learned.variants;
  }

  /** Remembers that a statement with this many variants failed. */
  shrink(rows: string, failed: number, now: number): void {
    const variants = Math.min(this.of(rows, now), Math.ceil(failed / 2));
    this.#learned.delete(rows);
    this.#learned.set(rows, { variants, until: now + KEPT_MS });
    const [oldest] = this.#learned.keys();
    if (this.#learned.size > ROWS_MAX && oldest !== undefined) this.#learned.delete(oldest);
  }
}
