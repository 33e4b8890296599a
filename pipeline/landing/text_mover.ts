// Moves texts from span_texts_recent (not searchable) to span_texts (searchable) in large blocks:
// whole parts at a time, inside the store. The leader alone moves; a fence in the statement keeps a
// former leader from writing. While nothing is due to be moved, it does background work in steps, so
// that new texts never wait for long.
//
// Each row moves exactly once: a part never changes, rows already in span_texts are left out, and a
// part is dropped only after its rows are in. After a crash at any point, the next move does the
// rest.
import type { Logger } from '../../ops/platform/logger.ts';
import { backoffMs } from '../queues/backoff.ts';
import { DocumentNumbers } from './document_numbers.ts';

export interface RecentPart {
  name: string;
  rows: number;
  bytes: number;
  age_seconds: number;
}

/** Part with the document number of its first row. */
export interface NumberedRecentPart extends RecentPart {
  first: bigint;
}

export interface Moved {
  /** Number of rows copied. */
  copied: number;
  /** Parts whose rows are all in span_texts. A part that has lost rows meanwhile is not among them. */
  parts: readonly RecentPart[];
}

export interface TextStore {
  recentParts(): Promise<RecentPart[]>;
  /**
   * Raises the mover's fence, ends the moves of a former leader, and resolves with the new epoch.
   */
  takeMoverFence(workerId: string): Promise<number>;
  /**
   * Writes the postings of the parts, then copies those of their rows to span_texts that are not there
   * yet. Resolves with null if the epoch is not the newest.
   */
  move(parts: readonly NumberedRecentPart[], epoch: number, queryId: string): Promise<Moved | null>;
  /** Drops those of the parts that are there with all of their rows. */
  dropParts(parts: readonly RecentPart[]): Promise<void>;
}

/**
 * Result of a step: `more` if the next one can follow at once, `idle` if there is nothing to do for
 * now, `ended` if the work has to go on in a new epoch.
 */
export type Progress = 'more' | 'idle' | 'ended';

/** Work of the leader beside moves. */
export interface BackgroundWork {
  /** Starts over in a new epoch. */
  begin(epoch: number): void;
  /** Does a piece of the work, of a few seconds at most. */
  step(): Promise<Progress>;
  /**
   * Called when a step failed. Its statements may still run.
   * @returns `ended` if a new epoch has to stop them first
   */
  fail(): 'idle' | 'ended';
}

export interface TextMoverOptions {
  store: TextStore;
  workerId: string;
  logger: Logger;
  isLeader(): boolean;
  /** Resolves once everything written before the call would survive power loss. */
  sync(): Promise<void>;
  observe(waitingRows: number, movedRows: number, seconds: number): void;
  /** In order: a step of the second is done when the first is idle. */
  background: readonly BackgroundWork[];
}

/** Minimum rows of a move, so that a word gets one row of postings for many texts. */
const MOVE_ROWS_MIN = 50_000;
/**
 * Maximum wait of the oldest part, in seconds, before a smaller move. Together with the move
 * itself, it keeps texts searchable within 10 s.
 */
const WAIT_SECONDS_MAX = 4;
/** Few rows move earlier, because they cost little. */
const SMALL_ROWS_MAX = 5000;
const SMALL_WAIT_SECONDS = 1;
/**
 * Maximum uncompressed bytes of a move. ClickHouse holds them in memory while it sorts them, and
 * groups their words.
 */
const MOVE_BYTES_MAX = 128 * 1024 * 1024;
/**
 * Minimum of the bytes of a move. After a failure a move takes half as much, because texts in which
 * nearly every word is new (ids, hashes) need ten times their size while their words are grouped,
 * which may exceed the memory limit. After a success it takes twice as much again.
 */
const MOVE_BYTES_MIN = 4 * 1024 * 1024;
const LOOK_MS = 500;
/** Time without steps of a work after one failed. */
const BACKGROUND_PAUSE_MS = 30_000;

/** Returns the parts of the next move, oldest first; none if it is better to wait. */
export function chooseParts(parts: readonly RecentPart[], bytesMax = MOVE_BYTES_MAX): RecentPart[] {
  const rows = parts.reduce((sum, part) => sum + part.rows, 0);
  const age = Math.max(0, ...parts.map((part) => part.age_seconds));
  const bytes = parts.reduce((sum, part) => sum + part.bytes, 0);
  const due =
    rows >= MOVE_ROWS_MIN ||
    bytes >= MOVE_BYTES_MAX ||
    age >= WAIT_SECONDS_MAX ||
    (rows > 0 && rows <= SMALL_ROWS_MAX && age >= SMALL_WAIT_SECONDS);
  if (!due) return [];
  const chosen: RecentPart[] = [];
  let taken = 0;
  for (const part of parts.toSorted((a, b) => b.age_seconds - a.age_seconds)) {
    if (chosen.length > 0 && taken + part.bytes > bytesMax) break;
    chosen.push(part);
    taken += part.bytes;
  }
  return chosen;
}

export class TextMover {
  readonly #options: TextMoverOptions;
  #epoch: number | null = null;
  /** Numbers of the epoch; a new epoch has others. */
  #numbers: DocumentNumbers | null = null;
  #moves = 0;
  #bytesMax = MOVE_BYTES_MAX;
  /** Works of which a step failed, with the time at which they go on. */
  readonly #paused = new Map<BackgroundWork, number>();
  #stopped = false;
  #running: Promise<void> | null = null;
  #wake: (() => void) | null = null;

  constructor(options: TextMoverOptions) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#wake?.();
    await this.#running;
  }

  async #run(): Promise<void> {
    for (let failures = 0; !this.#stopped;) {
      let wait = LOOK_MS;
      try {
        if (await this.#step()) wait = 0;
        failures = 0;
      } catch (error) {
        this.#options.logger.warn({ err: error }, 'texts could not be moved; trying again');
        wait = backoffMs(failures);
        failures += 1;
      }
      if (wait > 0 && !this.#isStopped()) await this.#pause(wait);
    }
  }

  #isStopped(): boolean {
    return this.#stopped;
  }

  async #pause(ms: number): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, ms);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  /** @returns true if there may be more to move at once */
  async #step(): Promise<boolean> {
    const { store, workerId } = this.#options;
    if (!this.#options.isLeader()) {
      this.#epoch = null;
      // Only the leader reports what waits; a stale figure of this worker would remain next to it.
      this.#options.observe(0, 0, 0);
      return false;
    }
    if (this.#epoch === null) {
      this.#epoch = await store.takeMoverFence(workerId);
      this.#numbers = new DocumentNumbers(this.#epoch);
      for (const work of this.#options.background) work.begin(this.#epoch);
    }
    const parts = await store.recentParts();
    const waiting = parts.reduce((sum, part) => sum + part.rows, 0);
    const chosen = chooseParts(parts, this.#bytesMax);
    if (chosen.length === 0) {
      this.#options.observe(waiting, 0, 0);
      return this.#workInBackground();
    }
    this.#moves += 1;
    const began = performance.now();
    const done = await this.#move(chosen, this.#epoch);
    if (done === null) {
      this.#options.logger.warn('another worker moves texts now');
      this.#epoch = null;
      return false;
    }
    const rows = chosen.reduce((sum, part) => sum + part.rows, 0);
    // Postings of the other rows have no document. The next epoch sweeps the last move of this one.
    if (done.copied < rows) this.#epoch = null;
    await this.#options.sync();
    await store.dropParts(done.parts);
    this.#options.observe(waiting - rows, rows, (performance.now() - began) / 1000);
    return waiting - rows >= MOVE_ROWS_MIN;
  }

  /** @returns true if there may be more to do at once */
  async #workInBackground(): Promise<boolean> {
    for (const work of this.#options.background) {
      if (performance.now() < (this.#paused.get(work) ?? -Infinity)) continue;
      const progress = await this.#stepOf(work);
      if (progress === 'idle') continue;
      if (progress === 'ended') this.#epoch = null;
      return true;
    }
    return false;
  }

  async #stepOf(work: BackgroundWork): Promise<Progress> {
    try {
      return await work.step();
    } catch (error) {
      // New texts are moved, and other work is done, whatever failed.
      this.#options.logger.warn({ err: error }, 'background work on texts failed; trying again later');
      this.#paused.set(work, performance.now() + BACKGROUND_PAUSE_MS);
      return work.fail();
    }
  }

  async #move(parts: readonly RecentPart[], epoch: number): Promise<Moved | null> {
    try {
      const numbers = (this.#numbers ??= new DocumentNumbers(epoch));
      const numbered = parts.map((part) => ({ ...part, first: numbers.take(part.rows) }));
      const moved = await this.#options.store.move(numbered, epoch, `move-${this.#options.workerId}-${this.#moves}`);
      this.#bytesMax = Math.min(MOVE_BYTES_MAX, this.#bytesMax * 2);
      return moved;
    } catch (error) {
      this.#bytesMax = Math.max(MOVE_BYTES_MIN, this.#bytesMax / 2);
      // The statement may still run, and a second one would not see its rows. Raising a new fence
      // waits for it, or kills it.
      this.#epoch = null;
      throw error;
    }
  }
}
