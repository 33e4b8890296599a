// Lets other work of the process run between the steps of long work, such as the reading or splitting
// of many texts. Each process lands or answers for everybody on one event loop.
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

  /**
   * Resolves at once unless the work has lasted WORK_MS since the last pause, otherwise after other
   * work has run.
   * @throws the signal's reason when it has aborted meanwhile
   */
  async give(): Promise<void> {
    if (performance.now() - this.#began < WORK_MS) return;
    await giveWay();
    this.#signal.throwIfAborted();
    this.#began = performance.now();
  }
}
