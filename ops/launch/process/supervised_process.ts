// Child process that is restarted when it dies, with growing pauses, and given up when it keeps
// dying. Guarantees: at most one instance runs at a time, and none starts after stop().
import { setTimeout as sleep } from 'node:timers/promises';
import { type Exit, describeExit } from './child.ts';
import { forgetProcess, recordProcess } from './pid_files.ts';

/** Maximum deaths within a minute. */
const DEATHS_MAX = 5;
const DEATHS_WINDOW_MS = 60_000;
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 3000;

/** Running child. */
export interface Running {
  pid: number;
  stop(): Promise<void>;
  kill(): void;
  exited: Promise<Exit>;
}

export interface SupervisedProcessOptions {
  name: string;
  runDir: string;
  /** Starts the child. `signal` aborts when stop() is called before the child is running. */
  start(signal: AbortSignal): Promise<Running>;
  /** Returns true while deaths are not the child's fault (a full disk); it is not given up then. */
  excused?: () => boolean;
  /** Called with one line when the child died and will be restarted. */
  onDeath: (line: string) => void;
  /** Called once, with one line, when the child is given up. */
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

  /**
   * Starts the child for the first time.
   * @throws the error of `start`
   */
  async start(): Promise<void> {
    void this.#keep(await this.#boot());
  }

  /** Stops the child and waits until it has ended. May be called before start() and repeatedly. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#booting?.catch(() => null);
    await this.#running?.stop();
    forgetProcess(this.#options.runDir, this.#options.name);
  }

  /**
   * Stops the running child, which is then restarted as if it had died. Does nothing while no child
   * is running.
   */
  async restart(): Promise<void> {
    if (!this.#isStopping()) await this.#running?.stop();
  }

  /** Sends SIGKILL without waiting. */
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
      // The child was stopped, or stop() was called while none was running.
      if (this.#isStopping()) return;
      const waitMs = this.#countDeath();
      if (waitMs === null) {
        onGiveUp(`${why}, more than ${DEATHS_MAX} times within a minute`);
        return;
      }
      onDeath(`${why}; restarting it`);
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

  /**
   * Returns the pause before the next start in milliseconds; null when the child died too often.
   */
  #countDeath(): number | null {
    const now = performance.now();
    this.#deaths.push(now);
    while ((this.#deaths[0] ?? now) < now - DEATHS_WINDOW_MS) this.#deaths.shift();
    if (this.#deaths.length > DEATHS_MAX && this.#options.excused?.() === true) return BACKOFF_MAX_MS;
    if (this.#deaths.length > DEATHS_MAX) return null;
    return Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (this.#deaths.length - 1));
  }
}
