// Lets callers that ask for the same work at the same time share it: the first starts the work, and those that come
// before it ends get the same result. Guarantees: the work goes on while one of its callers waits, it is aborted
// once all of them have left, and nothing is kept of work that has ended, so a failure is tried again. The callers of
// one piece of work are bounded; a further one runs the work by itself.

interface Running<Value> {
  ended: Promise<Value>;
  /** Callers that wait for the end. */
  callers: number;
  aborter: AbortController;
}

export class SharedWork<Value> {
  readonly #callersMax: number;
  readonly #running = new Map<string, Running<Value>>();

  /** @param callersMax callers that share one piece of work */
  constructor(callersMax: number) {
    this.#callersMax = callersMax;
  }

  /**
   * Joins the work that runs under a key, or starts it.
   * @param work gets a signal that aborts once all callers have left
   * @returns the result, which rejects with the signal's reason when that aborts first; joined is true if the work had
   * started before
   */
  run(
    key: string,
    signal: AbortSignal,
    work: (signal: AbortSignal) => Promise<Value>,
  ): { result: Promise<Value>; joined: boolean } {
    if (signal.aborted) return { result: Promise.reject(signal.reason as Error), joined: false };
    const known = this.#running.get(key);
    const joined = known !== undefined && known.callers < this.#callersMax;
    const running = joined ? known : this.#start(key, work);
    return { result: this.#wait(key, running, signal), joined };
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<Value>): Running<Value> {
    const aborter = new AbortController();
    const running = { ended: work(aborter.signal), callers: 0, aborter };
    if (!this.#running.has(key)) this.#running.set(key, running);
    const forget = (): void => {
      this.#forget(key, running);
    };
    // Also takes the failure of work that all callers have left.
    running.ended.then(forget, forget);
    return running;
  }

  #wait(key: string, running: Running<Value>, signal: AbortSignal): Promise<Value> {
    running.callers += 1;
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        running.callers -= 1;
        if (running.callers === 0) {
          // A caller that comes now must not join work that is being aborted.
          this.#forget(key, running);
          running.aborter.abort(signal.reason);
        }
        reject(signal.reason as Error);
      };
      signal.addEventListener('abort', leave, { once: true });
      const stay = (): void => {
        signal.removeEventListener('abort', leave);
      };
      running.ended.finally(stay).then(resolve, reject);
    });
  }

  #forget(key: string, running: Running<Value>): void {
    if (this.#running.get(key) === running) this.#running.delete(key);
  }
}
