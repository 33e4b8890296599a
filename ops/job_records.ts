// Records of long work in KV, held in memory: the API makes and shows them, workers take them and write how far they are.
import type { KV } from '@nats-io/kv';
import { type LongJob, longJobKey, parseLongJob } from '../schemas/records/job_record.ts';
import type { Log } from './nats/open_log.ts';
import { type Held, WatchedBucket } from './watched_bucket.ts';

/** Jobs of an org that are not over; beyond it none is taken. */
export const OPEN_JOBS_MAX = 20;

export class JobRecords {
  readonly #bucket: WatchedBucket<LongJob>;
  readonly #kv: KV;

  private constructor(bucket: WatchedBucket<LongJob>, kv: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
  }

  /** Resolves when every record there is has been loaded. */
  static async open(log: Log, onProblem: (problem: string, cause: unknown) => void): Promise<JobRecords> {
    const kv = await log.bucket('job_records');
    return new JobRecords(await WatchedBucket.open(log.nc, kv, { name: 'job_records', parse: parseLongJob, onProblem }), kv);
  }

  /** Of one that was made by another process a moment ago too. */
  async find(org_id: string, job_id: string): Promise<LongJob | null> {
    const key = longJobKey(org_id, job_id);
    const held = this.#bucket.get(key);
    if (held !== undefined) return held;
    const entry = await this.#kv.get(key);
    return entry?.operation === 'PUT' ? parseLongJob(entry.string()) : null;
  }

  /** Every job, or those of an org. */
  all(org_id?: string): LongJob[] {
    return [...this.#bucket.values()].filter((job) => org_id === undefined || job.org_id === org_id);
  }

  /** Every job with its revision. */
  *held(): Iterable<Held<LongJob>> {
    for (const [, held] of this.#bucket.entries()) yield held;
  }

  async create(job: LongJob): Promise<void> {
    await this.#bucket.create(longJobKey(job.org_id, job.job_id), job);
  }

  /** Writes over a revision. @returns the new one @throws RevisionConflict when another write came first */
  async update(job: LongJob, revision: number): Promise<number> {
    const key = longJobKey(job.org_id, job.job_id);
    await this.#bucket.update(key, job, revision);
    return this.#bucket.held(key)?.revision ?? 0;
  }

  /** Calls back on every change. Returns what stops it. */
  onChange(listener: () => void): () => void {
    return this.#bucket.onChange(listener);
  }

  close(): void {
    this.#bucket.close();
  }
}
