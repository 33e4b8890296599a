// Records of long jobs (a restore, an erasure) in KV: the request, the progress and the result, by
// organization and id. The worker that runs a job writes its record with CAS. Times are ISO 8601.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const JOB_STATUSES = ['queued', 'running', 'complete', 'failed'] as const;

/** The fields of a job that the API shows. */
export const jobView = z
  .object({
    job_id: z.string(),
    kind: z.string().describe('Kind of the job: restore, …'),
    status: z.enum(JOB_STATUSES),
    progress: z
      .object({ done: z.int().min(0), total: z.int().min(0) })
      .describe('Progress in units of the work; total is 0 while it is not known'),
    result: z.record(z.string(), z.unknown()).nullable().describe('What the job did; null until it is complete'),
    error: z.string().nullable().describe('Why the job failed'),
    created_at: z.iso.datetime(),
    started_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Job' });
export type JobView = z.infer<typeof jobView>;

export const longJob = jobView.extend({
  org_id: z.string(),
  /** Arguments, of the shape of the kind. */
  args: z.unknown(),
  /** Id of the worker that runs it now; empty when none does. */
  holder: z.string(),
  /** Grows with every sign of life of the holder. */
  beats: z.int().min(0),
  /** Number of times that the job was started or resumed. */
  tries: z.int().min(0),
});
export type LongJob = z.infer<typeof longJob>;

export const longJobKey = (org_id: string, job_id: string): string => `${orgKey(org_id)}.${job_id}`;

/**
 * Parses a stored record.
 * @throws ZodError or SyntaxError when the text is not such a record
 */
export function parseLongJob(text: string): LongJob {
  return longJob.parse(JSON.parse(text));
}

/** Returns the record of a new job. */
export function newLongJob(given: Pick<LongJob, 'job_id' | 'org_id' | 'kind' | 'args' | 'created_at'>): LongJob {
  return {
    ...given,
    status: 'queued',
    progress: { done: 0, total: 0 },
    result: null,
    error: null,
    started_at: null,
    ended_at: null,
    holder: '',
    beats: 0,
    tries: 0,
  };
}

/**
 * Restoring from cold storage: kind and arguments. Days are whole numbers since 1970-01-01 (UTC),
 * both included.
 */
export const RESTORE = 'restore';
export const restoreArgs = z.object({
  since_day: z.int().nullable(),
  until_day: z.int().nullable(),
  /** null restores every trace of the days. */
  trace_ids: z.array(z.string()).nullable(),
});
export type RestoreArgs = z.infer<typeof restoreArgs>;
