// The records of long jobs, watched into memory: the API creates and shows them, workers take them
// and record their progress.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../platform/report_problem.ts';
import { type LongJob, longJobKey, parseLongJob } from '../../schemas/records/job_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { watch } from '../platform/nats/watch.ts';
import { type BucketEntry, RevisionConflict, type WatchedBucket } from '../platform/nats/watched_bucket.ts';

/** Maximum number of an organization's jobs that are not over; further ones are rejected. */
export const OPEN_JOBS_MAX = 20;
/**
 * Maximum number of an organization's ended jobs that are kept; the oldest are deleted beyond it.
 */
export const ENDED_JOBS_MAX = 1000;
/** Maximum number of jobs that are deleted when one is created. */
const FORGOTTEN_MAX = 10;

export class JobRecords {
  readonly #bucket: WatchedBucket<LongJob>;
  readonly #kv: KV;

  private constructor(bucket: WatchedBucket<LongJob>, kv: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
  }

  /** Opens the records. Resolves once every present one is loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<JobRecords> {
    return new JobRecords(await watch(log, 'job_records', onProblem), await log.bucket('job_records'));
  }

  /**
   * Returns a job, including one that another process created a moment ago; null where there is
   * none.
   */
  async find(org_id: string, job_id: string): Promise<LongJob | null> {
    const key = longJobKey(org_id, job_id);
    const held = this.#bucket.get(key);
    if (held !== undefined) return held;
    const entry = await this.#kv.get(key);
    return entry?.operation === 'PUT' ? parseLongJob(entry.string()) : null;
  }

  /** Returns every job, or those of one organization. */
  all(org_id?: string): LongJob[] {
    return [...this.#bucket.values()].filter((job) => org_id === undefined || job.org_id === org_id);
  }

  /** Yields every job with its revision. */
  *held(): Iterable<BucketEntry<LongJob>> {
    for (const [, held] of this.#bucket.entries()) yield held;
  }

  async create(job: LongJob): Promise<void> {
    await this.#bucket.create(longJobKey(job.org_id, job.job_id), job);
  }

  /**
   * Deletes the oldest of an organization's ended jobs, a few at a time, until ENDED_JOBS_MAX are
   * left.
   */
  async forgetOldest(org_id: string): Promise<void> {
    const ended = this.all(org_id).filter(({ status }) => status === 'complete' || status === 'failed');
    if (ended.length <= ENDED_JOBS_MAX) return;
    const oldest = ended
      .sort((a, b) => (a.created_at < b.created_at ? -1 : 1))
      .slice(0, Math.min(FORGOTTEN_MAX, ended.length - ENDED_JOBS_MAX));
    for (const { job_id } of oldest) {
      const key = longJobKey(org_id, job_id);
      const held = this.#bucket.held(key);
      if (held === undefined) continue;
      await this.#bucket.delete(key, held.revision).catch((error: unknown) => {
        // Another process has deleted it.
        if (!(error instanceof RevisionConflict)) throw error;
      });
    }
  }

  /**
   * Replaces a revision of a job. @returns the new revision @throws RevisionConflict when another
   * write came first
   */
  async update(job: LongJob, revision: number): Promise<number> {
    const key = longJobKey(job.org_id, job.job_id);
    await this.#bucket.update(key, job, revision);
    return this.#bucket.held(key)?.revision ?? 0;
  }

  /**
   * Calls back on every change, with the job unless it was deleted. @returns a function that ends
   * the subscription
   */
  onChange(listener: (job: LongJob | null) => void): () => void {
    return this.#bucket.onChange((_key, held) => {
      listener(held?.value ?? null);
    });
  }

  close(): void {
    this.#bucket.close();
  }
}
