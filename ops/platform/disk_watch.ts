// Watches the free space of a disk every second, so that ingest can be rejected before anything
// runs out of space. Takes a folder; says whether its disk is low and calls back when that changes.
import type { ReportProblem } from './report_problem.ts';
import { statfs } from 'node:fs/promises';

/**
 * A disk is low when less than this share of it is free, or less than FREE_BYTES_MIN where that is
 * smaller. What was accepted before must still be landed, merged and checkpointed in the rest.
 */
const FREE_SHARE_MIN = 0.1;
const FREE_BYTES_MIN = 2 * 1024 ** 3;
/**
 * A low disk stays low until the free space exceeds the bound by this factor, so that it does not
 * flicker at the bound.
 */
const RECOVERED_FACTOR = 1.1;
const LOOK_MS = 1000;

export interface DiskRoom {
  /** Bytes that the process may still write. */
  free: number;
  total: number;
}

/** Returns the bytes that must stay free on a disk of this size. */
export function reserveOf(total: number): number {
  return Math.min(total * FREE_SHARE_MIN, FREE_BYTES_MIN);
}

/** Returns whether the disk is low now. @param was whether it was low at the last look */
export function isLow({ free, total }: DiskRoom, was: boolean): boolean {
  const reserve = reserveOf(total);
  return free < (was ? reserve * RECOVERED_FACTOR : reserve);
}

/** Reads the free space of a folder's disk. @throws Error when the system does not answer */
export async function roomOf(folder: string): Promise<DiskRoom> {
  const { bsize, blocks, bavail } = await statfs(folder);
  return { free: bsize * bavail, total: bsize * blocks };
}

export interface DiskWatchOptions {
  /** The folder whose disk is watched; null: no disk is watched, and it is never low. */
  folder: string | null;
  /** Called when the disk becomes low, and when it has room again. */
  onChange: (low: boolean, room: DiskRoom) => void;
  /** Called at every look. */
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

  /** Starts watching. Resolves after the first look. */
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
      // A disk whose space cannot be read does not count as low: nothing is rejected because an
      // answer is missing.
      if (!this.#failed) this.#options.onProblem('the free space of the disk cannot be read', error);
      this.#failed = true;
      this.#low = false;
    }
  }
}
