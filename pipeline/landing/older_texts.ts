// Makes the texts of span_texts searchable that have words and no document number: rows from before
// the store had numbers, and rows that a restore brought back from cold storage. The text mover calls
// `step` while it has nothing to move; each step is one slice of postings or less. It takes some
// parts at a time: writes the postings of their texts, then sets the numbers by a mutation.
//
// A text is found exactly once, whatever ends in between:
// - A number belongs to one row. A name means the same rows in the same order for ever; other mutations
//   rename a part and keep the order, and one that deletes rows leaves fewer (part_names.ts). All
//   postings of a part are written before its mutation begins, and the mutation takes rows without a
//   number from the part that it names. So each number that it sets has its postings, and a second
//   mutation changes nothing.
// - A part that was merged or lost rows meanwhile is not found. Its rows keep doc = 0, and are taken
//   again with other numbers. For a part that was only renamed, the mutation is repeated.
// - A mutation of a former leader sets numbers of its own epoch, whose postings are complete. It may end
//   while the next leader writes postings of the same rows; the mutation of the next leader then finds
//   no row. It cannot begin later: its condition reads the fence when the engine begins with a part.
//   Places without documents are removed only once no such mutation is left (place_sweep.ts).
import type { Logger } from '../../ops/platform/logger.ts';
import { DocumentNumbers, SEGMENT_DOCS } from './document_numbers.ts';
import { contentOf, type Part, sameNames, underPresentNames } from './part_names.ts';
import type { BackgroundWork, Progress } from './text_mover.ts';

/** Part with texts that have words and no number. */
export interface OlderPart extends Part {
  /** Uncompressed bytes of all columns. */
  bytes: number;
  /** Number of these texts. */
  texts: number;
  /** True while the engine merges it into another part. */
  merging: boolean;
}

/** Consecutive document numbers. */
export interface Numbers {
  from: bigint;
  /** First number after them. */
  until: bigint;
}

/** Part with the document number of its first row. */
export interface NumberedOlderPart extends Part {
  first: bigint;
}

export interface OlderTextStore {
  /** Returns parts in the order in which to take them. */
  olderParts(): Promise<OlderPart[]>;
  /** Returns all parts that are there. */
  parts(): Promise<Part[]>;
  /**
   * Returns ranges of numbers, each of one segment and of at most so many rows of the part, that
   * together have all its texts without a number; none if the part is gone.
   */
  slices(part: NumberedOlderPart, sliceRows: number): Promise<Numbers[]>;
  /**
   * Writes the postings of a slice.
   * @returns the number of rows written; 0 if the part is gone, or no text of the slice has words
   */
  writePostings(part: NumberedOlderPart, slice: Numbers, epoch: number, queryId: string): Promise<number>;
  /** Starts the mutation that sets the numbers of the parts that it finds. */
  setNumbers(parts: readonly NumberedOlderPart[], epoch: number): Promise<void>;
  /** Returns the number of texts that have a number of the range. */
  numbered(range: Numbers): Promise<number>;
  /**
   * Returns true if no mutation of this or a former mover is left.
   * @throws Error if one keeps failing; it is cancelled first
   */
  settled(): Promise<boolean>;
  isNewest(epoch: number): Promise<boolean>;
}

export interface OlderTextsOptions {
  store: OlderTextStore;
  workerId: string;
  logger: Logger;
  /** Resolves once everything written before the call would survive power loss. */
  sync(): Promise<void>;
  /** Monotonic time in milliseconds; of the process unless given. */
  now?: () => number;
}

/** Time from a look that found no text to the next one. */
const LOOK_MS = 5000;
/** Time to the next look while the engine merges or mutates all parts with texts. */
const CHANGING_LOOK_MS = 2000;
/** Time between two lines of the log about the progress. */
const REPORT_MS = 60_000;
/** Rows after which no further part joins a batch. One mutation sets the numbers of a batch. */
const BATCH_ROWS = 8 * SEGMENT_DOCS;
const BATCH_PARTS_MAX = 100;
/**
 * Texts of a slice. A whole segment takes 1.4 s on an idle machine, a tenth less for each text, but new
 * texts wait for it, and several times as long on a busy one.
 */
const SLICE_ROWS_MAX = SEGMENT_DOCS / 2;
/**
 * Uncompressed bytes of a slice: half of them are words, which take several times as much memory
 * while they are grouped. After a failure a slice has half as many.
 */
const SLICE_BYTES_MAX = 256 * 1024 * 1024;
const SLICE_BYTES_MIN = 1024 * 1024;

interface Batch {
  parts: NumberedOlderPart[];
  slices: Slice[];
  range: Numbers;
  /** Number of texts that get a number. */
  texts: number;
  /** True once the mutation was started. */
  started: boolean;
}

interface Slice extends Numbers {
  /** Its part. */
  content: string;
}

/** Returns the parts of the next batch. */
export function chooseOlder(parts: readonly OlderPart[]): OlderPart[] {
  const chosen: OlderPart[] = [];
  let rows = 0;
  for (const part of parts) {
    if (part.merging) continue;
    if (rows >= BATCH_ROWS || chosen.length === BATCH_PARTS_MAX) break;
    chosen.push(part);
    rows += part.rows;
  }
  return chosen;
}

export class OlderTexts implements BackgroundWork {
  readonly #options: OlderTextsOptions;
  readonly #now: () => number;
  #epoch = 0;
  #numbers = new DocumentNumbers(0, 'older');
  #batch: Batch | null = null;
  #statements = 0;
  #sliceBytes = SLICE_BYTES_MAX;
  #lookAt = -Infinity;
  /** Texts that were numbered since the log reported a beginning; null if there was nothing to do. */
  #done: number | null = null;
  #reportAt = 0;

  constructor(options: OlderTextsOptions) {
    this.#options = options;
    this.#now = options.now ?? (() => performance.now());
  }

  begin(epoch: number): void {
    this.#epoch = epoch;
    this.#numbers = new DocumentNumbers(epoch, 'older');
    this.#batch = null;
  }

  fail(): 'ended' {
    this.#sliceBytes = Math.max(SLICE_BYTES_MIN, this.#sliceBytes / 2);
    return 'ended';
  }

  async step(): Promise<Progress> {
    const batch = this.#batch;
    if (batch === null) return this.#look();
    if (batch.parts.length === 0) return 'ended';
    const [slice] = batch.slices;
    if (slice !== undefined) return this.#write(batch, slice);
    return batch.started ? this.#finish(batch) : this.#setNumbers(batch);
  }

  async #look(): Promise<Progress> {
    if (this.#now() < this.#lookAt) return 'idle';
    // The mutation of a former leader may be about to number what would be found here.
    if (!(await this.#options.store.settled())) return 'idle';
    const parts = await this.#options.store.olderParts();
    this.#report(parts.reduce((sum, { texts }) => sum + texts, 0));
    this.#batch = await this.#plan(chooseOlder(parts));
    if (this.#batch !== null) return 'more';
    this.#lookAt = this.#now() + (parts.length === 0 ? LOOK_MS : CHANGING_LOOK_MS);
    return 'idle';
  }

  async #plan(chosen: readonly OlderPart[]): Promise<Batch | null> {
    const batch: Batch = { parts: [], slices: [], range: { from: 0n, until: 0n }, texts: 0, started: false };
    for (const { name, rows, bytes, texts } of chosen) {
      const part = { name, rows, first: this.#numbers.take(rows) };
      const fit = Math.floor((this.#sliceBytes * rows) / Math.max(1, bytes));
      const slices = await this.#options.store.slices(part, Math.max(1, Math.min(SLICE_ROWS_MAX, fit)));
      // A part that is gone is found again by the next look.
      if (slices.length === 0) continue;
      if (batch.parts.length === 0) batch.range.from = part.first;
      batch.range.until = part.first + BigInt(rows);
      batch.parts.push(part);
      batch.slices.push(...slices.map((slice) => ({ ...slice, content: contentOf(name) })));
      batch.texts += texts;
    }
    return batch.parts.length === 0 ? null : batch;
  }

  async #write(batch: Batch, slice: Slice): Promise<Progress> {
    const { store, workerId } = this.#options;
    await this.#rename(batch);
    const part = batch.parts.find(({ name }) => contentOf(name) === slice.content);
    if (part !== undefined) {
      this.#statements += 1;
      const queryId = `move-${workerId}-older-${this.#epoch}-${this.#statements}`;
      const written = await store.writePostings(part, slice, this.#epoch, queryId);
      // Nothing was written if the part was renamed before the statement began. A name that is there
      // afterwards was there all along: the slice has no words.
      if (written === 0 && !sameNames([part], underPresentNames([part], await store.parts()))) return 'more';
      this.#sliceBytes = Math.min(SLICE_BYTES_MAX, this.#sliceBytes * 2);
    }
    batch.slices.shift();
    return 'more';
  }

  async #setNumbers(batch: Batch): Promise<Progress> {
    // The mutation empties the words, so the postings must not be lost after it.
    await this.#options.sync();
    await this.#rename(batch);
    if (batch.parts.length === 0) return 'ended';
    await this.#options.store.setNumbers(batch.parts, this.#epoch);
    batch.started = true;
    return 'idle';
  }

  async #finish(batch: Batch): Promise<Progress> {
    const { store } = this.#options;
    if (!(await store.settled())) return 'idle';
    const texts = await store.numbered(batch.range);
    const left = texts === batch.texts ? [] : underPresentNames(batch.parts, await store.olderParts());
    if (left.length > 0 && (await store.isNewest(this.#epoch))) {
      // Their names changed before the mutation began.
      batch.parts = left;
      batch.started = false;
      return 'more';
    }
    this.#done = (this.#done ?? 0) + texts;
    this.#batch = null;
    // Where a part was merged or lost rows, places lack their documents. Only earlier epochs are swept.
    return texts === batch.texts ? 'more' : 'ended';
  }

  /** Gives the parts of the batch their present names, and forgets those that are gone. */
  async #rename(batch: Batch): Promise<void> {
    batch.parts = underPresentNames(batch.parts, await this.#options.store.parts());
  }

  /** Logs the beginning, the end, and what is left once a minute. */
  #report(left: number): void {
    const { logger } = this.#options;
    if (left === 0) {
      if (this.#done !== null) logger.info({ texts: this.#done }, 'older texts can be searched');
      this.#done = null;
      return;
    }
    if (this.#done !== null && this.#now() < this.#reportAt) return;
    if (this.#done === null) logger.info({ texts: left }, 'older texts are made searchable');
    else logger.info({ texts: this.#done, left }, 'older texts are still made searchable');
    this.#done ??= 0;
    this.#reportAt = this.#now() + REPORT_MS;
  }
}
