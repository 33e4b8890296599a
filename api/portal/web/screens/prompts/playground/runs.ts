// The runs of the playground: one call of a model for each column and input, a few at a time. Cells
// subscribe to their own run; pieces of text are reported at most once a frame. A new start replaces
// what ran before, and stop ends what runs.
import { isAbort } from '../../../client/error.ts';
import { type ModelCall, streamCall } from './stream_call.ts';

/** Calls at the same time: a browser has six connections to a service, and other requests need some. */
const RUNS_AT_ONCE = 3;

export interface Run {
  status: 'waiting' | 'running' | 'done' | 'failed' | 'stopped';
  text: string;
  trace_id: string | null;
  error: unknown;
  duration_ms: number | null;
}

const WAITING: Run = { status: 'waiting', text: '', trace_id: null, error: null, duration_ms: null };

export class Runs {
  readonly #runs = new Map<string, Run>();
  readonly #listeners = new Set<() => void>();
  #end = new AbortController();
  #version = 0;
  #frame = 0;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  /** Changes with every change of a run. */
  readonly version = (): number => this.#version;

  get(key: string): Run | undefined {
    return this.#runs.get(key);
  }

  get all(): ReadonlyMap<string, Run> {
    return this.#runs;
  }

  get isRunning(): boolean {
    return this.#runs.values().some(({ status }) => status === 'waiting' || status === 'running');
  }

  /** Ends what runs, forgets it, and makes the calls, each under its key. */
  async start(calls: readonly (readonly [key: string, call: ModelCall])[]): Promise<void> {
    this.stop();
    const end = new AbortController();
    this.#end = end;
    this.#runs.clear();
    for (const [key] of calls) this.#runs.set(key, WAITING);
    this.#changed();
    const left = [...calls];
    const work = async (): Promise<void> => {
      for (let next = left.shift(); next !== undefined && !end.signal.aborted; next = left.shift())
        await this.#run(...next, end.signal);
    };
    await Promise.all(Array.from({ length: RUNS_AT_ONCE }, work));
  }

  /** Ends the calls in progress; their texts so far stay. */
  stop(): void {
    this.#end.abort();
    for (const [key, run] of this.#runs)
      if (run.status === 'waiting' || run.status === 'running') this.#runs.set(key, { ...run, status: 'stopped' });
    this.#changed();
  }

  async #run(key: string, call: ModelCall, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    let run: Run = { ...WAITING, status: 'running' };
    const set = (patch: Partial<Run>): void => {
      // Another start has replaced this run.
      if (signal.aborted) return;
      run = { ...run, ...patch };
      this.#runs.set(key, run);
      this.#later();
    };
    set({});
    try {
      await streamCall(
        call,
        {
          onTrace: (trace_id) => {
            set({ trace_id });
          },
          onText: (piece) => {
            set({ text: run.text + piece });
          },
        },
        signal,
      );
      set({ status: 'done', duration_ms: performance.now() - began });
    } catch (error) {
      if (!isAbort(error)) set({ status: 'failed', error, duration_ms: performance.now() - began });
    }
  }

  #later(): void {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#changed();
    });
  }

  #changed(): void {
    this.#version += 1;
    for (const listener of this.#listeners) listener();
  }
}
