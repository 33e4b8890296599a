// Leases of scheduled jobs: one KV record per job, written with CAS. The holder renews the record
// while it runs the job; a lease that was not renewed for LEASE_MS, by the observer's own monotonic
// clock, has expired. Guarantees: a job has at most one live holder. A holder that could not renew
// for HOLD_MS stops by itself, before another worker may take the lease; after a longer pause its
// next write is rejected.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { JobRecord } from '../../schemas/records/job.ts';

export const LEASE_MS = 12_000;
const HOLD_MS = 9_000;
const RENEW_MS = 3_000;
const END_TRIES_MAX = 5;
const END_PAUSE_MS = 300;

/** Outcome of a run, and its effect on the schedule. */
export interface LeaseEnd {
  outcome: 'done' | 'failed';
  /** Newest slot that is done with from now on; absent to leave it unchanged. */
  slot?: string;
  failures?: number;
}

/** Lease of a job that this worker holds. */
export interface Lease {
  /** Aborts when this worker no longer holds the lease. */
  readonly signal: AbortSignal;
  /**
   * Releases the lease and records the outcome. If the record cannot be written, the lease expires.
   */
  end: (how: LeaseEnd) => Promise<void>;
  /** Releases the lease as if the job had not started, so that another worker runs it. */
  release: () => Promise<void>;
}

export interface LeaseOptions {
  log: Pick<Log, 'nc' | 'bucket'>;
  workerId: string;
  onProblem: ReportProblem;
  /** Divides LEASE_MS and the other times; for tests. */
  hurry?: number;
}

export class JobLeases {
  readonly #bucket: WatchedBucket<JobRecord>;
  readonly #options: LeaseOptions;
  readonly #hurry: number;
  /**
   * Newest revision of each record that this process has seen, and when, on its monotonic clock.
   */
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

  /** Creates the record of a job if it has none, with every slot up to `slot` (ISO 8601) done. */
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

  /**
   * Takes the lease of a job. Returns null if another worker holds it or was faster, or if the job
   * has no record yet.
   * @throws Error when KV cannot be written
   */
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
      // Another worker wrote any other revision.
      if (held?.revision !== revision) throw new RevisionConflict('another worker holds the job');
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
            this.#options.onProblem(`the outcome of the job ${name} could not be written; its lease expires`, error);
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
      release: () => finish({}),
    };
  }
}
