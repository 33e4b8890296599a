// Removes places from postings that no document has: a failed move leaves them, and older texts whose
// part was merged or emptied before they got their numbers. They say which words a text had, and an
// erasure would not find them. The text mover calls `step` while it has nothing to move.
//
// Only segments of epochs before the present one are swept, because no text can get a number of them
// any more: the fence stopped their statements, and the sweep waits for their last mutation. Of an
// epoch's moves only the last can have failed, so a sweep looks at the segments from the last document
// on; and at all segments of older texts. The store remembers up to which epoch it was swept. A look
// reads the places of the parts with these segments, beside the moves: a second or two for a million
// documents.
//
// Each replica of the store removes places by the documents that it has. A look therefore counts the
// documents, and a replica that has another number of them removes nothing until a later removal.
import type { Logger } from '../../ops/platform/logger.ts';
import { firstSegmentOf } from './document_numbers.ts';
import type { BackgroundWork, Progress } from './text_mover.ts';

export interface PlaceStore {
  /** Returns the epoch before which everything was swept. */
  sweptEpoch(): Promise<number>;
  /** Returns the segments from one to before another in which places may lack their documents. */
  unsweptSegments(from: bigint, until: bigint): Promise<bigint[]>;
  /** Returns those of the segments with a place that no document has. */
  orphaned(segments: readonly bigint[]): Promise<bigint[]>;
  /** Returns the number of documents of the segments. */
  documents(segments: readonly bigint[]): Promise<number>;
  /**
   * Starts the mutation that removes such places from the segments, unless they have another number
   * of documents by then.
   */
  removeOrphans(segments: readonly bigint[], documents: number): Promise<void>;
  writeSwept(epoch: number): Promise<void>;
  /** Returns true if no mutation of this or a former mover is left. */
  settled(): Promise<boolean>;
}

/** Removals of an epoch; more would hide one that does not work. */
const REMOVALS_MAX = 3;
/** Segments of a look: a bit for each of their documents is 2 MB. */
const SEGMENTS_AT_ONCE = 256;

/** A look that was started. */
interface Look {
  ended: boolean;
  failure: { error: unknown } | null;
}

export class PlaceSweep implements BackgroundWork {
  readonly #store: PlaceStore;
  readonly #logger: Logger;
  /** Null once everything before it was swept. */
  #epoch: number | null = null;
  /** Segments to look at; null before they were read. */
  #segments: bigint[] | null = null;
  #orphaned: bigint[] = [];
  /** Number of documents of the orphaned segments. */
  #documents = 0;
  #removals = 0;
  #look: Look | null = null;

  constructor(store: PlaceStore, logger: Logger) {
    this.#store = store;
    this.#logger = logger;
  }

  begin(epoch: number): void {
    this.#epoch = epoch;
    this.fail();
  }

  fail(): 'idle' {
    this.#segments = null;
    this.#removals = 0;
    return 'idle';
  }

  async step(): Promise<Progress> {
    const epoch = this.#epoch;
    if (epoch === null || !this.#hasLooked()) return 'idle';
    if (this.#segments === null) {
      if (!(await this.#store.settled())) return 'idle';
      const swept = await this.#store.sweptEpoch();
      this.#segments = await this.#store.unsweptSegments(firstSegmentOf(swept), firstSegmentOf(epoch));
      this.#orphaned = [];
      this.#documents = 0;
      return 'more';
    }
    if (this.#segments.length > 0) {
      this.#startLook(epoch, this.#segments.splice(0, SEGMENTS_AT_ONCE));
      return 'idle';
    }
    if (this.#orphaned.length === 0) {
      await this.#store.writeSwept(epoch);
      this.#epoch = null;
      return 'more';
    }
    // The next look finds out whether the removal worked, and what was erased meanwhile.
    if (this.#removals === REMOVALS_MAX)
      throw new Error(`${this.#orphaned.length} segments still have places without documents`);
    this.#removals += 1;
    await this.#store.removeOrphans(this.#orphaned, this.#documents);
    this.#logger.info({ segments: this.#orphaned.length }, 'places without documents are removed from postings');
    this.#segments = null;
    return 'idle';
  }

  /**
   * Returns true if no look is under way.
   * @throws the error of the last one
   */
  #hasLooked(): boolean {
    const look = this.#look;
    if (look?.ended === false) return false;
    this.#look = null;
    if (look?.failure != null) throw look.failure.error;
    return true;
  }

  #startLook(epoch: number, segments: readonly bigint[]): void {
    const look: Look = { ended: false, failure: null };
    this.#look = look;
    void this.#orphanedAmong(segments)
      .then(
        ({ orphaned, documents }) => {
          // The next epoch starts over with all segments.
          if (this.#epoch !== epoch) return;
          this.#orphaned.push(...orphaned);
          this.#documents += documents;
        },
        (error: unknown) => {
          look.failure = { error };
        },
      )
      .finally(() => {
        look.ended = true;
      });
  }

  async #orphanedAmong(segments: readonly bigint[]): Promise<{ orphaned: bigint[]; documents: number }> {
    const orphaned = await this.#store.orphaned(segments);
    return { orphaned, documents: orphaned.length === 0 ? 0 : await this.#store.documents(orphaned) };
  }
}
