// A child process that is kept running: when it dies it is started again, later and later, and given up on when it keeps dying.
// Comes in: how to start it. Guarantees: at most one runs at a time, and none starts once stop() was called.
import { setTimeout as sleep } from 'node:timers/promises';
import { type Exit, describeExit } from './child.ts';
import { forgetProcess, recordProcess } from './pid_files.ts';

/** More deaths than this within a minute and it is given up on. */
const DEATHS_MAX = 5;
const DEATHS_WINDOW_MS = 60_000;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 3000;

/** A child that is up. */
export interface Running {
  pid: number;
  stop(): Promise<void>;
  kill(): void;
  exited: Promise<Exit>;
}

export interface KeptOptions {
  name: string;
  runDir: string;
  /** Starts it; signal: stop() was called before it was up. */
  start(signal: AbortSignal): Promise<Running>;
  /** Told in one line when it died and is started again. */
  onDeath(line: string): void;
  /** Told once, in one line, when it is given up on. */
  onGiveUp(line: string): void;
}

export class Kept {
  readonly #options: KeptOptions;
  readonly #deaths: number[] = [];
  readonly #stopped = new AbortController();
  #booting: Promise<Running> | null = null;
  #running: Running | null = null;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  /** Starts it for the first time. @throws what start throws */
  async start(): Promise<void> {
    await this.#boot();
    void this.#keep();
  }

  /** Asks it to end and waits until it has. Safe before start and twice. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#booting?.catch(() => null);
    await this.#running?.stop();
    forgetProcess(this.#options.runDir, this.#options.name);
  }

  /** kill -9, without waiting. */
  kill(): void {
    this.#stopped.abort();
    this.#running?.kill();
  }

  async #boot(): Promise<void> {
    this.#booting = this.#options.start(this.#stopped.signal);
    try {
      this.#running = await this.#booting;
      recordProcess(this.#options.runDir, this.#options.name, this.#running.pid);
    } finally {
      this.#booting = null;
    }
  }

  async #keep(): Promise<void> {
    while (this.#running !== null) {
      const exit = await this.#running.exited;
      this.#running = null;
      // stop() may have been called meanwhile.
      if (this.#stopped.signal.aborted) return;
      let why = `ended with ${describeExit(exit)}`;
      while (this.#running === null) {
        const waitMs = this.#countDeath();
        if (waitMs === null) {
          this.#options.onGiveUp(`${this.#options.name} ${why}, more than ${DEATHS_MAX} times within a minute`);
          return;
        }
        this.#options.onDeath(`${this.#options.name} ${why}; starting it again`);
        await sleep(waitMs, null, { signal: this.#stopped.signal }).catch(() => null);
        if (this.#stopped.signal.aborted) return;
        await this.#boot().catch((error: unknown) => {
          why = error instanceof Error ? error.message : String(error);
        });
      }
    }
  }

  /** How long to wait before the next start; null when it died too often. */
  #countDeath(): number | null {
    const now = performance.now();
    this.#deaths.push(now);
    while ((this.#deaths[0] ?? now) < now - DEATHS_WINDOW_MS) this.#deaths.shift();
    if (this.#deaths.length > DEATHS_MAX) return null;
    return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (this.#deaths.length - 1));
  }
}
