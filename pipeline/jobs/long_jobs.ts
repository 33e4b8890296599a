// Runner of long jobs (schemas/records/job_record.ts). Every worker has one. A worker takes a job
// by writing its record with CAS, and then rewrites the record at intervals with its progress. If a
// record was not written for LEASE_MS, by the observer's own clock, its worker is lost, and another
// one starts the job again, so a handler must do no harm when it runs again. Guarantees: a job has
// at most one live holder (a worker that cannot write stops before another may start); every
// accepted job ends as complete or failed, whichever process dies; a job that keeps killing its
// workers fails; an organization has one job running at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import type { JobRecords } from '../../ops/exchange/job_records.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { ObjectStoreError } from '../../ops/platform/object_store/object_store.ts';
import { type BucketEntry, RevisionConflict } from '../../ops/platform/nats/watched_bucket.ts';
import type { LongJob } from '../../schemas/records/job_record.ts';
import { StoreUnavailable } from '../../sql/client/client.ts';
import { describeFailure } from './failure.ts';
import { backoffMs } from '../queues/backoff.ts';

const LEASE_MS = 12_000;
const HOLD_MS = 9_000;
const BEAT_MS = 1_000;
const LOOK_MS = 1_000;
/** Jobs that one worker runs concurrently. */
const RUNNING_MAX = 2;
/** Maximum starts of a job; a job that was started this often may be what kills its workers. */
const BEGUN_MAX = 5;
/** Attempts of a worker while a store is unavailable, with growing pauses, before the job fails. */
const TRIES_MAX = 6;
const END_TRIES_MAX = 10;

export interface LongJobContext {
  job_id: string;
  org_id: string;
  args: unknown;
  /** Reports progress, in units of the work. */
  progress: (done: number, total: number) => void;
  /** Aborts when this worker no longer holds the job. */
  signal: AbortSignal;
  log: Logger;
}

/** Runs a job and resolves with its result. */
export type LongJobHandler = (context: LongJobContext) => Promise<Record<string, unknown>>;

export interface LongJobRunnerOptions {
  records: JobRecords;
  /** Handlers by kind of job. */
  handlers: Readonly<Record<string, LongJobHandler>>;
  workerId: string;
  log: Logger;
  /** Milliseconds since the epoch. */
  now: () => number;
  observe: (kind: string, outcome: 'done' | 'failed', seconds: number) => void;
  /** Divides LEASE_MS and the other times; for tests. */
  hurry?: number;
}

export class LongJobRunner {
  readonly #options: LongJobRunnerOptions;
  readonly #hurry: number;
  readonly #stopped = new AbortController();
  readonly #runs = new Map<string, Promise<void>>();
  #stops: (() => void)[] = [];
  #looking = false;

  constructor(options: LongJobRunnerOptions) {
    this.#options = options;
    this.#hurry = options.hurry ?? 1;
  }

  start(): void {
    const timer = setInterval(() => void this.#look(), LOOK_MS / this.#hurry);
    const unwatch = this.#options.records.onChange(() => void this.#look());
    this.#stops = [
      () => {
        clearInterval(timer);
      },
      unwatch,
    ];
    void this.#look();
  }

  /** Takes no further job, aborts the running ones, and resolves when they are queued again. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#stopped.abort(new Error('the worker is stopping'));
    await Promise.allSettled(this.#runs.values());
  }

  async #look(): Promise<void> {
    if (this.#looking || this.#stopped.signal.aborted) return;
    this.#looking = true;
    try {
      while (this.#runs.size < RUNNING_MAX) {
        const next = this.#next();
        if (next === null || !(await this.#take(next))) return;
      }
    } catch (error) {
      this.#options.log.warn({ err: error }, 'a job could not be taken; trying again');
    } finally {
      this.#looking = false;
    }
  }

  /** Returns the oldest job without a holder, of an organization with no running job. */
  #next(): BucketEntry<LongJob> | null {
    const held = [...this.#options.records.held()].filter(({ value }) => value.kind in this.#options.handlers);
    const busy = new Set(
      held.filter((one) => one.value.status === 'running' && !this.#isSilent(one)).map(({ value }) => value.org_id),
    );
    const free = held.filter(
      (one) => one.value.status === 'queued' || (one.value.status === 'running' && this.#isSilent(one)),
    );
    const ready = free.filter(({ value }) => !busy.has(value.org_id) && !this.#runs.has(value.job_id));
    return ready.toSorted((a, b) => (a.value.created_at < b.value.created_at ? -1 : 1))[0] ?? null;
  }

  #isSilent({ moved_at }: BucketEntry<LongJob>): boolean {
    return performance.now() - moved_at > LEASE_MS / this.#hurry;
  }

  /** @returns false when the runner should wait before it looks again */
  async #take({ value: job, revision }: BucketEntry<LongJob>): Promise<boolean> {
    const { records, workerId, now } = this.#options;
    const at = new Date(now()).toISOString();
    try {
      if (job.tries >= BEGUN_MAX) {
        const error = `the job was started ${job.tries} times and its worker died each time`;
        await records.update({ ...job, status: 'failed', holder: '', error, ended_at: at }, revision);
        return true;
      }
      const began = performance.now();
      const taken: LongJob = {
        ...job,
        status: 'running',
        holder: workerId,
        beats: job.beats + 1,
        tries: job.tries + 1,
        started_at: job.started_at ?? at,
      };
      const run = this.#run(taken, await records.update(taken, revision), began).finally(() => {
        this.#runs.delete(job.job_id);
        void this.#look();
      });
      this.#runs.set(job.job_id, run);
      return true;
    } catch (error) {
      if (error instanceof RevisionConflict) return false;
      throw error;
    }
  }

  /** Runs a job to its end. Never rejects. */
  async #run(job: LongJob, revision: number, began: number): Promise<void> {
    const { handlers, now, observe } = this.#options;
    const log = this.#options.log.child({ job: job.kind, job_id: job.job_id });
    const lease = new LongJobLease(this.#options, this.#hurry, job, revision, began);
    const signal = AbortSignal.any([lease.lost, this.#stopped.signal]);
    const at = (): string => new Date(now()).toISOString();
    const seconds = (): number => (performance.now() - began) / 1000;
    const context: LongJobContext = {
      job_id: job.job_id,
      org_id: job.org_id,
      args: job.args,
      progress: (done, total) => {
        lease.progress = { done, total };
      },
      signal,
      log,
    };
    try {
      const handler = handlers[job.kind];
      if (handler === undefined) throw new Error(`there is no handler for jobs of the kind ${job.kind}`);
      const result = await this.#tryUntilDone(() => handler(context), signal, log);
      observe(job.kind, 'done', seconds());
      await lease.end({ status: 'complete', result, error: null, ended_at: at() });
    } catch (error) {
      // A worker that stops, or has lost the job, leaves it to others. The job has not failed.
      if (this.#stopped.signal.aborted) await lease.end({ status: 'queued', tries: job.tries - 1 });
      else if (lease.lost.aborted) await lease.leave();
      else {
        log.error({ err: error }, 'the job failed');
        observe(job.kind, 'failed', seconds());
        await lease.end({ status: 'failed', error: describeFailure(error).detail, ended_at: at() });
      }
    }
  }

  async #tryUntilDone<T>(run: () => Promise<T>, signal: AbortSignal, log: Logger): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await run();
      } catch (error) {
        const away =
          error instanceof StoreUnavailable || (error instanceof ObjectStoreError && error.failure === 'unavailable');
        if (!away || tries >= TRIES_MAX || signal.aborted) throw error;
        log.warn({ err: error, tries }, 'a store is unavailable; trying again');
        await sleep(backoffMs(tries) / this.#hurry, undefined, { signal });
      }
    }
  }
}

/** Lease of a long job, which this worker holds as long as the job's record says so. */
class LongJobLease {
  readonly #records: JobRecords;
  readonly #log: Logger;
  readonly #lost = new AbortController();
  readonly #timers: NodeJS.Timeout[];
  #job: LongJob;
  #revision: number;
  #safeUntil: number;
  #writing: Promise<void> = Promise.resolve();
  readonly #holdMs: number;
  readonly #beatMs: number;
  progress: LongJob['progress'];

  constructor({ records, log }: LongJobRunnerOptions, hurry: number, job: LongJob, revision: number, began: number) {
    this.#records = records;
    this.#log = log;
    this.#job = job;
    this.#revision = revision;
    this.#holdMs = HOLD_MS / hurry;
    this.#beatMs = BEAT_MS / hurry;
    this.#safeUntil = began + this.#holdMs;
    this.progress = job.progress;
    const beat = setInterval(() => {
      if (!this.#lost.signal.aborted) this.#writing = this.#writing.then(() => this.#beat());
    }, this.#beatMs);
    const watch = setInterval(() => {
      if (performance.now() > this.#safeUntil)
        this.#lost.abort(new Error('the record of the job could not be written in time'));
    }, this.#beatMs / 4);
    this.#timers = [beat, watch];
  }

  /** Aborts when this worker no longer holds the job. */
  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  /**
   * Writes the outcome and releases the job. If the record cannot be written, the lease expires.
   */
  async end(how: Partial<LongJob>): Promise<void> {
    await this.leave();
    for (let tries = 1; tries <= END_TRIES_MAX; tries++) {
      try {
        await this.#write({ holder: '', ...how });
        return;
      } catch (error) {
        if (error instanceof RevisionConflict) return;
        this.#log.warn({ err: error }, 'the end of a job could not be written');
        await sleep(this.#beatMs / 4);
      }
    }
  }

  async leave(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.#writing;
  }

  async #beat(): Promise<void> {
    try {
      await this.#write({});
    } catch (error) {
      if (error instanceof RevisionConflict) this.#lost.abort(error);
      else this.#log.warn({ err: error }, 'the record of a job could not be written');
    }
  }

  async #write(change: Partial<LongJob>): Promise<void> {
    const at = performance.now();
    const next: LongJob = { ...this.#job, progress: this.progress, beats: this.#job.beats + 1, ...change };
    this.#revision = await this.#records.update(next, this.#revision);
    this.#job = next;
    this.#safeUntil = at + this.#holdMs;
  }
}
