// How much room a disk has left: looked at every second, so that writers can be turned away before anything runs out of it. In: a
// folder. Out: whether its disk is low, and the calls of whoever wants to know when that changes.
import type { ReportProblem } from './report_problem.ts';
import { statfs } from 'node:fs/promises';

/**
 * A disk is low when less than this part of it is free, or less than FREE_BYTES_MIN where that is less. What was let in before still has
 * to land, be merged and be checkpointed in the rest.
 */
const FREE_SHARE_MIN = 0.1;
const FREE_BYTES_MIN = 2 * 1024 ** 3;
/** It is low until this much more is free, so that a disk at the bound does not flicker. */
const RECOVERED_FACTOR = 1.1;
const LOOK_MS = 1000;

export interface DiskRoom {
  /** What a process may still write, bytes. */
  free: number;
  total: number;
}

/** Bytes that have to stay free on a disk of this size. */
export function reserveOf(total: number): number {
  return Math.min(total * FREE_SHARE_MIN, FREE_BYTES_MIN);
}

/** Whether the disk is low now; `was` is what it was at the last look. */
export function isLow({ free, total }: DiskRoom, was: boolean): boolean {
  const reserve = reserveOf(total);
  return free < (was ? reserve * RECOVERED_FACTOR : reserve);
}

/** What is free on the disk of a folder. @throws when it cannot be asked */
export async function roomOf(folder: string): Promise<DiskRoom> {
  const { bsize, blocks, bavail } = await statfs(folder);
  return { free: bsize * bavail, total: bsize * blocks };
}

export interface DiskWatchOptions {
  /** The disk that holds this folder is watched; null: none, and it is never low. */
  folder: string | null;
  /** Told when it becomes low, and when it has room again. */
  onChange: (low: boolean, room: DiskRoom) => void;
  /** Told of every look. */
  onLook?: (room: DiskRoom) => void;
  onProblem: ReportProblem;
}

export class DiskWatch {
  readonly #options: DiskWatchOptions;
  #low = false;
  #failed = false;
  #timer: NodeJS.Timeout | undefined;

  private constructor(options: DiskWatchOptions) {
    this.#options = options;
  }

  /** Resolves after the first look. */
  static async start(options: DiskWatchOptions): Promise<DiskWatch> {
    const watch = new DiskWatch(options);
    const { folder } = options;
    if (folder === null) return watch;
    await watch.#look(folder);
    watch.#timer = setInterval(() => void watch.#look(folder), LOOK_MS);
    watch.#timer.unref();
    return watch;
  }

  get low(): boolean {
    return this.#low;
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  async #look(folder: string): Promise<void> {
    try {
      const room = await roomOf(folder);
      this.#failed = false;
      this.#options.onLook?.(room);
      const low = isLow(room, this.#low);
      if (low === this.#low) return;
      this.#low = low;
      this.#options.onChange(low, room);
    } catch (error) {
      // What cannot be asked is not low: nothing is refused for want of an answer.
      if (!this.#failed) this.#options.onProblem('the free space of the disk cannot be read', error);
      this.#failed = true;
      this.#low = false;
    }
  }
}
