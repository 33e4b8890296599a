// Lets other requests run between the steps of long work, such as the reading of many texts.
import { setImmediate as giveWay } from 'node:timers/promises';

/** Time of work between two pauses, milliseconds. */
const WORK_MS = 5;

export class Pauses {
  readonly #signal: AbortSignal;
  #began = performance.now();

  /** @param signal ends the work: give rejects with its reason */
  constructor(signal: AbortSignal) {
    this.#signal = signal;
  }

  /** Resolves at once unless the work has lasted long enough, otherwise after other work has run. */
  async give(): Promise<void> {
    if (performance.now() - this.#began < WORK_MS) return;
    await giveWay();
    this.#signal.throwIfAborted();
    this.#began = performance.now();
  }
}
