// Finds the workers whose processes are gone before their heartbeats count as missing: the NATS server
// closes the connection of a process when the process is killed, and from then on answers at once that
// nobody listens at the subject of the worker. A paused or busy process keeps its connection.
//
// A live worker may lose its connection too, and reconnects. So a worker counts as gone only if it was
// absent in every look for ABSENT_MS and no heartbeat of it arrived meanwhile.

/**
 * A live worker is connected again after this time: it tries at once, and again after 300 ms at most
 * (RECONNECT_MS and its jitter in ops/platform/nats/connect.ts).
 */
export const ABSENT_MS = 400;
/**
 * Maximum workers that one worker looks at while all are heard, so that the looks of many workers cost
 * the server little. Each worker is looked at by as many others; the rest find it when it is silent.
 */
export const LOOKED_AT_MAX = 8;
/** Each worker looks at one that is silent for this long: two heartbeats are missing. */
const SILENT_MS = 1000;

/** A worker, and when its last heartbeat was heard on the clock of `look`. */
interface HeardWorker {
  worker_id: string;
  heard_at: number;
}

export class AbsentWorkers {
  readonly #workerId: string;
  readonly #ask: (worker: string) => Promise<boolean>;
  /** When each absent worker was absent first. */
  #since = new Map<string, number>();

  /** @param ask resolves with true if a worker has no connection, false if it has or the server does not say */
  constructor(workerId: string, ask: (worker: string) => Promise<boolean>) {
    this.#workerId = workerId;
    this.#ask = ask;
  }

  /** True while a worker is absent and does not count as gone yet. */
  get isSuspecting(): boolean {
    return this.#since.size > 0;
  }

  /**
   * Looks at the workers that follow this one in the order of ids, and returns those that are gone.
   *
   * @param workers the workers that are heard, sorted by id; this one among them or not
   * @param now milliseconds on a monotonic clock
   */
  async look(workers: readonly HeardWorker[], now: number): Promise<string[]> {
    const looked = this.#lookedAt(workers, now);
    const answers = await Promise.all(looked.map(({ worker_id }) => this.#ask(worker_id)));
    const before = this.#since;
    this.#since = new Map();
    const gone: string[] = [];
    for (const [index, { worker_id, heard_at }] of looked.entries()) {
      if (answers[index] !== true) continue;
      const first = before.get(worker_id) ?? now;
      const since = first > heard_at ? first : now;
      if (now - since >= ABSENT_MS) gone.push(worker_id);
      else this.#since.set(worker_id, since);
    }
    return gone;
  }

  /** Forgets who was absent, because this process could not see who came back. */
  excuseAll(): void {
    this.#since.clear();
  }

  #lookedAt(workers: readonly HeardWorker[], now: number): HeardWorker[] {
    const after = workers.filter(({ worker_id }) => worker_id > this.#workerId);
    const before = workers.filter(({ worker_id }) => worker_id < this.#workerId);
    return [...after, ...before].filter(({ heard_at }, index) => index < LOOKED_AT_MAX || now - heard_at > SILENT_MS);
  }
}
