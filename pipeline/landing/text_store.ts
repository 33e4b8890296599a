// Reads the parts of span_texts_recent for the text mover, writes the postings of their texts, and
// moves their rows to span_texts. A mutation of the table may rename parts at any moment: each
// statement gets their present names, and a name that is there after a statement was there all along.
import { ClickHouseError } from '@clickhouse/client';
import type { ClickHouse } from '../../sql/client/client.ts';
import { MOVER_PARTITION } from '../../sql/stores/landing_fences.ts';
import { dropRecentParts, moveTexts, readRecentParts } from '../../sql/stores/landings.ts';
import {
  arePosted,
  type MoverStatement,
  type NumberRange,
  readParts,
  writePostings,
} from '../../sql/stores/postings.ts';
import { SEGMENT_DOCS, segmentsOf } from './document_numbers.ts';
import type { Fences } from './fences.ts';
import { sameNames, underPresentNames } from './part_names.ts';
import type { Moved, NumberedRecentPart, RecentPart, TextStore } from './text_mover.ts';

const SEGMENT = BigInt(SEGMENT_DOCS);
/** Attempts at a statement whose parts are renamed just before it begins. */
const TRIES_MAX = 5;
/** Maximum number of parts that a statement drops. A part takes some milliseconds. */
const DROPS_MAX = 64;
/** 232 NO_SUCH_DATA_PART, 233 BAD_DATA_PART_NAME. */
const GONE_CODES = new Set(['232', '233']);

export class ClickHouseTextStore implements TextStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;

  constructor(client: ClickHouse, fences: Fences) {
    this.#client = client;
    this.#fences = fences;
  }

  takeMoverFence(workerId: string): Promise<number> {
    return this.#fences.raiseForMover(workerId);
  }

  async recentParts(): Promise<RecentPart[]> {
    const rows = await readRecentParts(this.#client, {});
    return rows.map(({ age, ...part }) => ({ ...part, age_seconds: age }));
  }

  async move(parts: readonly NumberedRecentPart[], epoch: number, queryId: string): Promise<Moved | null> {
    for (const segment of new Set(parts.flatMap(({ first, rows }) => segmentsOf(first, rows))))
      await this.#post(parts, segment, { epoch, queryId: `${queryId}-${segment}` });
    const moved = await this.#copy(parts, { epoch, queryId });
    return (await this.#fences.fencedOff([[MOVER_PARTITION, epoch]])).length === 0 ? moved : null;
  }

  async dropParts(parts: readonly RecentPart[]): Promise<void> {
    for (let from = 0; from < parts.length; from += DROPS_MAX) await this.#drop(parts.slice(from, from + DROPS_MAX));
  }

  async #drop(parts: readonly RecentPart[]): Promise<void> {
    for (let tries = 1, named = parts; named.length > 0; tries += 1) {
      try {
        await dropRecentParts(
          this.#client,
          named.map(({ name }) => name),
        );
        return;
      } catch (error) {
        if (!(error instanceof ClickHouseError && GONE_CODES.has(error.code)) || tries === TRIES_MAX) throw error;
        // A part that has lost rows is moved again, and its other rows are known then.
        named = await this.#present(parts);
      }
    }
  }

  /**
   * Writes the postings of a segment for the parts that are there.
   * @throws Error if some of them may lack postings
   */
  async #post(
    parts: readonly NumberedRecentPart[],
    segment: bigint,
    statement: Omit<MoverStatement, 'parts'>,
  ): Promise<void> {
    const range = rangeOf(parts, segment);
    const named = await this.#present(parts);
    if (named.length === 0) return;
    await writePostings(this.#client, 'span_texts_recent', range, { parts: named, ...statement });
    const after = await this.#present(parts);
    if (sameNames(named, after)) return;
    if (!(await arePosted(this.#client, after, range)))
      throw new Error('parts of span_texts_recent changed while the postings of their texts were written');
  }

  /**
   * Copies the texts of the parts that are there.
   * @throws Error if some of them may not have been copied
   */
  async #copy(parts: readonly NumberedRecentPart[], statement: Omit<MoverStatement, 'parts'>): Promise<Moved> {
    const rows = parts.reduce((sum, part) => sum + part.rows, 0);
    let copied = 0;
    for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
      const named = await this.#present(parts);
      if (named.length > 0) copied += await moveTexts(this.#client, { parts: named, rows, ...statement });
      if (copied === rows || sameNames(named, await this.#present(parts))) return { copied, parts: named };
    }
    throw new Error('parts of span_texts_recent changed while their texts were moved');
  }

  async #present<P extends RecentPart>(parts: readonly P[]): Promise<P[]> {
    return underPresentNames(parts, await readParts(this.#client, { table: 'span_texts_recent' }));
  }
}

/** Returns the numbers of a segment that rows of the parts have. */
function rangeOf(parts: readonly NumberedRecentPart[], segment: bigint): NumberRange {
  const numbers = parts.flatMap(({ first, rows }) => [first, first + BigInt(rows)]);
  const first = numbers.reduce((least, number) => (number < least ? number : least));
  const end = numbers.reduce((most, number) => (number > most ? number : most));
  const [from, until] = [segment * SEGMENT, (segment + 1n) * SEGMENT];
  return { from: first > from ? first : from, until: end < until ? end : until };
}
