// The right to run a job: one record a job in KV, written with CAS. The holder writes it again and again while it runs; one
// that was not written for LEASE_MS, by the looker's own monotonic clock, has lost its holder and is free.
// Guarantees: at most one live holder of a job. A holder that could not write for HOLD_MS gives up by itself, before anybody
// else may begin; one that was paused for longer finds its next write refused.
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { JobRecord } from '../../schemas/records/job.ts';

export const LEASE_MS = 12_000;
const HOLD_MS = 9_000;
const RENEW_MS = 3_000;
const END_TRIES_MAX = 5;
const END_PAUSE_MS = 300;

/** How a run ended, and how far that brings the schedule. */
export interface LeaseEnd {
  outcome: 'done' | 'failed';
  /** What the record says of the schedule from now on; left out, it stays. */
  slot?: string;
  failures?: number;
}

/** A job that is this worker's to run. */
export interface Lease {
  /** Aborts when the job is no longer this worker's. */
  readonly signal: AbortSignal;
  /** Gives the job back and writes down how it went. Where that cannot be written, others find the lease run out. */
  end: (how: LeaseEnd) => Promise<void>;
  /** Gives the job back as if it had not begun: whoever comes next runs it. */
  giveBack: () => Promise<void>;
}

export interface LeaseOptions {
  log: Pick<Log, 'nc' | 'bucket'>;
  workerId: string;
  onProblem: (problem: string, cause: unknown) => void;
  /** LEASE_MS and the rest are divided by this, for tests. */
  hurry?: number;
}

export class JobLeases {
  readonly #bucket: WatchedBucket<JobRecord>;
  readonly #options: LeaseOptions;
  readonly #hurry: number;
  /** Which revision of a record this process has seen, and since when on its monotonic clock. */
  readonly #sighted = new Map<string, { revision: number; at: number }>();

  private constructor(bucket: WatchedBucket<JobRecord>, options: LeaseOptions) {
    this.#bucket = bucket;
    this.#options = options;
    this.#hurry = options.hurry ?? 1;
    for (const [name, { revision }] of bucket.entries()) this.#sight(name, revision);
    bucket.onChange((name, held) => {
      if (held !== null) this.#sight(name, held.revision);
    });
  }

  static async open(options: LeaseOptions): Promise<JobLeases> {
    return new JobLeases(await watch(options.log, 'jobs', options.onProblem), options);
  }

  record(name: string): JobRecord | undefined {
    return this.#bucket.get(name);
  }

  /** Makes the record of a job that has none, with everything up to `slot` (ISO 8601) dealt with. */
  async ensure(name: string, slot: string): Promise<void> {
    if (this.#bucket.get(name) !== undefined) return;
    try {
      await this.#bucket.create(name, {
        name,
        holder: '',
        deadline: null,
        slot,
        failures: 0,
        last_started_at: null,
        last_ended_at: null,
        last_outcome: null,
      });
    } catch (error) {
      if (!(error instanceof RevisionConflict)) throw error;
    }
  }

  /** Takes a job; null when somebody else runs it, or was faster, or it has no record yet. @throws Error when KV cannot be written */
  async take(name: string): Promise<Lease | null> {
    const held = this.#bucket.held(name);
    if (held === undefined || !this.#isFree(name, held.value)) return null;
    const began = performance.now();
    try {
      await this.#bucket.update(
        name,
        {
          ...held.value,
          holder: this.#options.workerId,
          deadline: this.#deadline(),
          last_started_at: new Date().toISOString(),
        },
        held.revision,
      );
    } catch (error) {
      if (error instanceof RevisionConflict) return null;
      throw error;
    }
    return this.#hold(name, began, this.#bucket.held(name)?.revision ?? 0);
  }

  close(): void {
    this.#bucket.close();
  }

  #sight(name: string, revision: number): void {
    if (this.#sighted.get(name)?.revision !== revision) this.#sighted.set(name, { revision, at: performance.now() });
  }

  #isFree(name: string, record: JobRecord): boolean {
    const silent = performance.now() - (this.#sighted.get(name)?.at ?? Infinity);
    return record.holder === '' || silent > LEASE_MS / this.#hurry;
  }

  #deadline(): string {
    return new Date(Date.now() + LEASE_MS / this.#hurry).toISOString();
  }

  #hold(name: string, began: number, firstRevision: number): Lease {
    const lost = new AbortController();
    let revision = firstRevision;
    let safeUntil = began + HOLD_MS / this.#hurry;
    let ended = false;
    let writing: Promise<void> = Promise.resolve();
    const write = async (change: Partial<JobRecord>): Promise<void> => {
      const held = this.#bucket.held(name);
      // Whatever stands there under another revision, somebody else wrote.
      if (held?.revision !== revision) throw new RevisionConflict('another worker has the job');
      const at = performance.now();
      await this.#bucket.update(name, { ...held.value, ...change }, revision);
      revision = this.#bucket.held(name)?.revision ?? 0;
      safeUntil = at + HOLD_MS / this.#hurry;
    };
    const renew = async (): Promise<void> => {
      try {
        await write({ deadline: this.#deadline() });
      } catch (error) {
        if (error instanceof RevisionConflict) lost.abort(error);
        else this.#options.onProblem(`the lease of the job ${name} could not be renewed`, error);
      }
    };
    const renewing = setInterval(() => {
      if (!ended && !lost.signal.aborted) writing = writing.then(renew);
    }, RENEW_MS / this.#hurry);
    const watching = setInterval(
      () => {
        if (performance.now() > safeUntil) lost.abort(new Error('the lease could not be renewed in time'));
      },
      RENEW_MS / 10 / this.#hurry,
    );
    const finish = async (change: Partial<JobRecord>): Promise<void> => {
      ended = true;
      clearInterval(renewing);
      clearInterval(watching);
      await writing;
      for (let tries = 1; ; tries++) {
        try {
          await write({ holder: '', deadline: null, ...change });
          return;
        } catch (error) {
          if (error instanceof RevisionConflict) return;
          if (tries >= END_TRIES_MAX) {
            this.#options.onProblem(`the end of the job ${name} could not be written down; its lease runs out`, error);
            return;
          }
          await new Promise((resolve) => setTimeout(resolve, END_PAUSE_MS));
        }
      }
    };
    return {
      signal: lost.signal,
      end: ({ outcome, ...schedule }) =>
        finish({ last_ended_at: new Date().toISOString(), last_outcome: outcome, ...schedule }),
      giveBack: () => finish({}),
    };
  }
}
