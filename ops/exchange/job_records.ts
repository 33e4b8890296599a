// Records of long work in KV, held in memory: the API makes and shows them, workers take them and write how far they are.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../platform/report_problem.ts';
import { type LongJob, longJobKey, parseLongJob } from '../../schemas/records/job_record.ts';
import type { Log } from '../platform/nats/open_log.ts';
import { watch } from '../platform/nats/watch.ts';
import { type Held, RevisionConflict, type WatchedBucket } from '../platform/nats/watched_bucket.ts';

/** Jobs of an org that are not over; beyond it none is taken. */
export const OPEN_JOBS_MAX = 20;
/** Jobs of an org that are kept once they are over; for more the oldest make room. */
export const ENDED_JOBS_MAX = 1000;
/** Jobs that are forgotten at most for one that is new. */
const FORGOTTEN_MAX = 10;

export class JobRecords {
  readonly #bucket: WatchedBucket<LongJob>;
  readonly #kv: KV;

  private constructor(bucket: WatchedBucket<LongJob>, kv: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
  }

  /** Resolves when every record there is has been loaded. */
  static async open(log: Log, onProblem: ReportProblem): Promise<JobRecords> {
    return new JobRecords(await watch(log, 'job_records', onProblem), await log.bucket('job_records'));
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

  /** Forgets the oldest of an org's jobs that are over, a few at a time, until ENDED_JOBS_MAX are left. */
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
        // Another process has forgotten it.
        if (!(error instanceof RevisionConflict)) throw error;
      });
    }
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
