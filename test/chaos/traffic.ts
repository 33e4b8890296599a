// The load balancer before the API processes, and the record of the requests that failed. Without health
// checks every process gets its turn, also one that is away, as the faults want it. With them a request goes to a
// process only while its /healthz answers 200, as in the deployments (ops/deploy).
import { type Answer, pause } from './client.ts';

/** Requests of callers while they were counted. */
export interface Calls {
  made: number;
  /** Why each of the others failed; at most FAILED_MAX of them are kept. */
  failed: string[];
  failures: number;
}

/** Time between two health checks of a process, in milliseconds. */
const CHECK_MS = 250;
const CHECK_MS_MAX = 2000;
const FAILED_MAX = 50;

export class Traffic {
  readonly #urls: readonly string[];
  /** Processes that take requests, by number; all of them without health checks. */
  #inService: ReadonlySet<number>;
  /** Processes that were taken out by hand. */
  readonly #removed = new Set<number>();
  #calls: Calls | null = null;
  #checking: Promise<void> | null = null;
  #turn = 0;

  constructor(urls: readonly string[]) {
    this.#urls = urls;
    this.#inService = new Set(urls.keys());
  }

  /** Returns the number of the process that gets the next request. */
  next(): number {
    this.#turn += 1;
    const able = [...this.#inService].filter((api) => !this.#removed.has(api));
    // A balancer without a process to choose sends the request somewhere, and it fails.
    return able[this.#turn % Math.max(1, able.length)] ?? this.#turn % this.#urls.length;
  }

  /** Begins to check the health of the processes, and to count requests. */
  open(): void {
    this.#calls = { made: 0, failed: [], failures: 0 };
    this.#checking = this.#check();
  }

  /** Ends what `open` began, and returns the counts. */
  async close(): Promise<Calls> {
    const calls = this.#calls ?? { made: 0, failed: [], failures: 0 };
    this.#calls = null;
    await this.#checking;
    this.#inService = new Set(this.#urls.keys());
    this.#removed.clear();
    return calls;
  }

  /** Takes a process out before it is stopped, as Kubernetes does with the endpoint of a pod. */
  remove(api: number): void {
    this.#removed.add(api);
  }

  /** Gives a process requests again, once its health check succeeds. */
  async restore(api: number): Promise<void> {
    this.#inService = new Set([...this.#inService].filter((one) => one !== api));
    this.#removed.delete(api);
    while (this.#calls !== null && !this.#inService.has(api)) await pause(CHECK_MS / 5);
  }

  /** Counts a request and its outcome. A limit that the organization itself has set is no failure. */
  note(what: string, answer: Answer | null): void {
    if (this.#calls === null) return;
    this.#calls.made += 1;
    if (!isFailure(answer)) return;
    this.#calls.failures += 1;
    if (this.#calls.failed.length < FAILED_MAX)
      this.#calls.failed.push(
        `${new Date().toISOString()} ${what}: ${answer === null ? 'no answer' : `${answer.status} of api-${answer.api + 1}: ${answer.text.slice(0, 160)}`}`,
      );
  }

  async #check(): Promise<void> {
    while (this.#calls !== null) {
      const healthy = await Promise.all(this.#urls.map(isHealthy));
      this.#inService = new Set([...healthy.keys()].filter((api) => healthy[api]));
      await pause(CHECK_MS);
    }
  }
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const { ok } = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(CHECK_MS_MAX) });
    return ok;
  } catch {
    return false;
  }
}

function isFailure(answer: Answer | null): boolean {
  if (answer === null || answer.status >= 500) return true;
  return answer.status === 429 && !answer.headers.has('x-quota-tokens-status');
}
