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

export interface SupervisedProcessOptions {
  name: string;
  runDir: string;
  /** Starts it; signal: stop() was called before it was up. */
  start(signal: AbortSignal): Promise<Running>;
  /** True while deaths are no fault of its own (a full disk): it is not given up on then. */
  excused?: () => boolean;
  /** Told in one line when it died and is started again. */
  onDeath: (line: string) => void;
  /** Told once, in one line, when it is given up on. */
  onGiveUp: (line: string) => void;
}

export class SupervisedProcess {
  readonly #options: SupervisedProcessOptions;
  readonly #deaths: number[] = [];
  readonly #stopped = new AbortController();
  #booting: Promise<Running> | null = null;
  #running: Running | null = null;

  constructor(options: SupervisedProcessOptions) {
    this.#options = options;
  }

  /** Starts it for the first time. @throws what start throws */
  async start(): Promise<void> {
    void this.#keep(await this.#boot());
  }

  /** Asks it to end and waits until it has. Safe before start and twice. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#booting?.catch(() => null);
    await this.#running?.stop();
    forgetProcess(this.#options.runDir, this.#options.name);
  }

  /** Ends what runs; it is started again as if it had died. Nothing happens while it is down. */
  async restart(): Promise<void> {
    if (!this.#isStopping()) await this.#running?.stop();
  }

  /** kill -9, without waiting. */
  kill(): void {
    this.#stopped.abort();
    this.#running?.kill();
  }

  async #boot(): Promise<Running> {
    this.#booting = this.#options.start(this.#stopped.signal);
    try {
      this.#running = await this.#booting;
      recordProcess(this.#options.runDir, this.#options.name, this.#running.pid);
      return this.#running;
    } finally {
      this.#booting = null;
    }
  }

  async #keep(first: Running): Promise<void> {
    const { name, onDeath, onGiveUp } = this.#options;
    let running: Running | null = first;
    let why = '';
    for (;;) {
      if (running !== null) why = `${name} ended with ${describeExit(await running.exited)}`;
      // Ended on purpose, or asked to stop while it was down.
      if (this.#isStopping()) return;
      const waitMs = this.#countDeath();
      if (waitMs === null) {
        onGiveUp(`${why}, more than ${DEATHS_MAX} times within a minute`);
        return;
      }
      onDeath(`${why}; starting it again`);
      await sleep(waitMs, null, { signal: this.#stopped.signal }).catch(() => null);
      if (this.#isStopping()) return;
      running = await this.#boot().catch((error: unknown) => {
        why = error instanceof Error ? error.message : String(error);
        return null;
      });
    }
  }

  #isStopping(): boolean {
    return this.#stopped.signal.aborted;
  }

  /** How long to wait before the next start; null when it died too often. */
  #countDeath(): number | null {
    const now = performance.now();
    this.#deaths.push(now);
    while ((this.#deaths[0] ?? now) < now - DEATHS_WINDOW_MS) this.#deaths.shift();
    if (this.#deaths.length > DEATHS_MAX && this.#options.excused?.() === true) return BACKOFF_MAX_MS;
    if (this.#deaths.length > DEATHS_MAX) return null;
    return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (this.#deaths.length - 1));
  }
}
