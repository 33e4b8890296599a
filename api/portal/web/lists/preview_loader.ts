// Loads what the visible rows of a list show beside their own numbers: cells ask when they appear, and
// one request at a time brings several rows, in the order in which they appeared. Answers are kept for the life of
// the screen.

/** Rows that wait; of those that were scrolled past long ago, none is asked for. */
const WAITING_MAX = 80;
/** Rows that appear in this time share a request. */
const GATHER_MS = 60;

type Fetch<P> = (ids: readonly string[], signal: AbortSignal) => Promise<ReadonlyMap<string, P>>;

export class PreviewLoader<P> {
  readonly #fetch: Fetch<P>;
  readonly #size: number;
  readonly #known = new Map<string, P>();
  readonly #asked = new Set<string>();
  readonly #listeners = new Map<string, Set<() => void>>();
  readonly #end = new AbortController();
  #waiting: string[] = [];
  #running = false;

  /** @param size rows in one request */
  constructor(fetch: Fetch<P>, size: number) {
    this.#fetch = fetch;
    this.#size = size;
  }

  readonly get = (id: string): P | undefined => this.#known.get(id);

  /** Asks for a row once, and calls the listener when it is there; returns the function that ends that. */
  readonly subscribe = (id: string, listener: () => void): (() => void) => {
    const listeners = this.#listeners.get(id) ?? new Set();
    this.#listeners.set(id, listeners.add(listener));
    if (!this.#asked.has(id)) {
      this.#asked.add(id);
      this.#waiting.push(id);
      for (const passed of this.#waiting.splice(0, this.#waiting.length - WAITING_MAX)) this.#asked.delete(passed);
      void this.#run();
    }
    return () => {
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(id);
    };
  };

  /** Cancels what runs; the loader asks for nothing more. */
  close(): void {
    this.#end.abort();
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    while (this.#waiting.length > 0 && !this.#end.signal.aborted) {
      await new Promise((resolve) => setTimeout(resolve, GATHER_MS));
      const ids = this.#waiting.splice(0, this.#size);
      try {
        for (const [id, preview] of await this.#fetch(ids, this.#end.signal)) this.#add(id, preview);
      } catch {
        // Cells stay empty: the rows are whole without them. The next time that a row appears asks again.
        for (const id of ids) this.#asked.delete(id);
        break;
      }
    }
    this.#running = false;
  }

  #add(id: string, preview: P): void {
    this.#known.set(id, preview);
    for (const listener of this.#listeners.get(id) ?? []) listener();
  }
}
