// Runner of scheduled jobs: each slot of a schedule runs once, on one of the workers; a call runs a
// job on demand. Every worker has a runner, and the job's lease decides which of them runs it, so
// no particular worker has to be alive. Guarantees: a job never runs twice at the same time; a slot
// whose worker died runs on another; of the slots missed while no worker was up, the newest runs; a
// failed run is retried a few times.
import type { NatsConnection } from '@nats-io/transport-node';
import { answerJobCalls, type JobCall, type TakenCall } from '../../ops/exchange/job_calls.ts';
import type { JobEnd } from '../../schemas/signals/job_calls.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import { describeFailure } from './failure.ts';
import type { Job, JobContext, JobResult } from './job.ts';
import type { JobLeases, Lease, LeaseEnd } from './lease.ts';
import { onSlots, slotBefore } from './schedule.ts';

/** Interval between two checks for unfinished slots. */
const LOOK_MS = 5000;
/** Pause before a failed slot is retried, and maximum attempts. */
const RETRY_MS = 300_000;
const TRIES_MAX = 4;
/** Maximum difference between the clocks of workers. */
const CLOCK_SKEW_MS_MAX = 60_000;

export interface RunnerOptions {
  nc: NatsConnection;
  leases: JobLeases;
  jobs: readonly Job[];
  log: Logger;
  observe: (job: string, outcome: 'done' | 'failed', seconds: number) => void;
  /** Interval of the checks in milliseconds; LOOK_MS unless given. */
  lookMs?: number;
}

type Asked = Pick<JobContext, 'now' | 'args'>;

export class JobRunner {
  readonly #options: RunnerOptions;
  /** Newest slot of each job. */
  readonly #due = new Map<string, number>();
  readonly #stopped = new AbortController();
  readonly #runs = new Set<Promise<unknown>>();
  readonly #looking = new Set<string>();
  #stops: (() => void)[] = [];

  constructor(options: RunnerOptions) {
    this.#options = options;
  }

  /**
   * Starts scheduling and answering calls. For a job that is new, every slot up to now counts as
   * done.
   */
  async start(): Promise<void> {
    const { jobs, leases, nc, lookMs } = this.#options;
    for (const job of jobs) {
      const slot = slotBefore(job.cron, Date.now()) ?? 0;
      this.#due.set(job.name, slot);
      await leases.ensure(job.name, new Date(slot).toISOString());
    }
    const timer = setInterval(() => {
      for (const job of jobs) void this.#look(job);
    }, lookMs ?? LOOK_MS);
    this.#stops = [
      () => {
        clearInterval(timer);
      },
      answerJobCalls(nc, (call) => this.#take(call)),
      ...jobs.map((job) =>
        onSlots(job.cron, (slot) => {
          this.#due.set(job.name, slot);
          void this.#look(job);
        }),
      ),
    ];
  }

  /**
   * Returns, by job, how many seconds its newest slot has been unfinished; 0 when it is done or
   * given up.
   */
  overdue(now: number): Map<string, number> {
    return new Map(
      this.#options.jobs.map(({ name }) => {
        const due = this.#due.get(name) ?? 0;
        const record = this.#options.leases.record(name);
        const waits = record !== undefined && !isDealtWith(record.slot, due, now);
        return [name, waits ? Math.max(0, now - due) / 1000 : 0];
      }),
    );
  }

  /** Starts no further run, aborts the running ones, and resolves when they have ended. */
  async stop(): Promise<void> {
    for (const stop of this.#stops) stop();
    this.#stopped.abort(new Error('the worker is stopping'));
    await Promise.allSettled(this.#runs);
  }

  /** Runs a job's newest slot unless it is done. */
  async #look(job: Job): Promise<void> {
    if (this.#stopped.signal.aborted || this.#looking.has(job.name)) return;
    this.#looking.add(job.name);
    try {
      const due = this.#due.get(job.name) ?? 0;
      const record = this.#options.leases.record(job.name);
      if (record === undefined || isDealtWith(record.slot, due, Date.now())) return;
      const retryMs = job.retry_ms ?? RETRY_MS;
      if (record.failures > 0 && Date.now() - Date.parse(record.last_ended_at ?? record.slot) < retryMs) return;
      const lease = await this.#options.leases.take(job.name);
      if (lease === null) return;
      const tries = record.failures + 1;
      await this.#run(job, lease, { now: Date.now() }, (outcome) => {
        const dealtWith = outcome === 'done' || tries >= TRIES_MAX;
        return dealtWith ? { outcome, slot: new Date(due).toISOString(), failures: 0 } : { outcome, failures: tries };
      });
    } catch (error) {
      this.#options.log.warn({ err: error, job: job.name }, 'the lease of a due job could not be taken; trying again');
    } finally {
      this.#looking.delete(job.name);
    }
  }

  async #take({ name, now, args }: JobCall): Promise<TakenCall> {
    const job = this.#options.jobs.find((one) => one.name === name);
    if (job === undefined) return 'unknown';
    if (this.#stopped.signal.aborted) return 'unavailable';
    const lease = await this.#options.leases.take(name);
    return lease === null
      ? 'running'
      : { end: this.#run(job, lease, { now: now ?? Date.now(), args }, (outcome) => ({ outcome })) };
  }

  /** Runs a job under its lease. Never rejects. */
  #run(job: Job, lease: Lease, asked: Asked, endOf: (outcome: 'done' | 'failed') => LeaseEnd): Promise<JobEnd> {
    const run = this.#runLeased(job, lease, asked, endOf);
    this.#runs.add(run);
    void run.finally(() => this.#runs.delete(run));
    return run;
  }

  async #runLeased(
    job: Job,
    lease: Lease,
    { now, args }: Asked,
    endOf: (outcome: 'done' | 'failed') => LeaseEnd,
  ): Promise<JobEnd> {
    const log = this.#options.log.child({ job: job.name });
    const timeout = AbortSignal.timeout(job.timeout_ms);
    const signal = AbortSignal.any([lease.signal, this.#stopped.signal, timeout]);
    const started_at = Date.now();
    const began = performance.now();
    const ended = (outcome: 'done' | 'failed'): void => {
      this.#options.observe(job.name, outcome, (performance.now() - began) / 1000);
    };
    try {
      const result: JobResult = await job.run({ now, signal, log, args });
      ended('done');
      log.info({ as_of: new Date(now).toISOString(), result }, 'job is done');
      await lease.end(endOf('done'));
      return { state: 'ended', now, started_at, ended_at: Date.now(), result };
    } catch (error) {
      ended('failed');
      const why: unknown = signal.aborted ? signal.reason : error;
      log.error({ err: why }, 'job failed');
      // A worker that stops leaves the job to other workers at once. The job has not failed.
      await (this.#stopped.signal.aborted ? lease.release() : lease.end(endOf('failed')));
      return { state: 'failed', ...describeFailure(timeout.aborted ? timedOut(job) : why) };
    }
  }
}

/**
 * Returns true when a slot is done. A recorded slot far ahead of the clock comes from a worker
 * whose clock was wrong, and is ignored: it would block the job until then.
 */
function isDealtWith(slot: string, due: number, now: number): boolean {
  const at = Date.parse(slot);
  return at >= due && at <= now + CLOCK_SKEW_MS_MAX;
}

const timedOut = (job: Job): Error => new Error(`it took longer than ${job.timeout_ms / 1000} s`);
