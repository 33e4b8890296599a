// Long work that was asked for (a restore, an erasure): what was asked, how far it is, what came of it. One record in KV by org
// and id, written with CAS by whoever runs it. Times are ISO 8601.
import { z } from 'zod';
import { orgKey } from './org.ts';

export const JOB_STATUSES = ['queued', 'running', 'complete', 'failed'] as const;

/** What is shown of a job. */
export const jobView = z
  .object({
    job_id: z.string(),
    kind: z.string().describe('What is done: restore, …'),
    status: z.enum(JOB_STATUSES),
    progress: z
      .object({ done: z.int().min(0), total: z.int().min(0) })
      .describe('In units of the work; total 0 while it is not known'),
    result: z.record(z.string(), z.unknown()).nullable().describe('What was done; null until it is complete'),
    error: z.string().nullable().describe('Why it failed'),
    created_at: z.iso.datetime(),
    started_at: z.iso.datetime().nullable(),
    ended_at: z.iso.datetime().nullable(),
  })
  .meta({ id: 'Job' });
export type JobView = z.infer<typeof jobView>;

export const longJob = jobView.extend({
  org_id: z.string(),
  /** As the kind takes them. */
  args: z.unknown(),
  /** Worker that runs it now; empty for nobody. */
  holder: z.string(),
  /** Grows with every sign of life of the holder. */
  beats: z.int().min(0),
  /** Times that it was begun, or gone on with. */
  tries: z.int().min(0),
});
export type LongJob = z.infer<typeof longJob>;

export const longJobKey = (org_id: string, job_id: string): string => `${orgKey(org_id)}.${job_id}`;

/** @throws ZodError when the text is no such record; SyntaxError when it is no JSON */
export function parseLongJob(text: string): LongJob {
  return longJob.parse(JSON.parse(text));
}

/** A job as it begins. */
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

/** Restoring from cold storage: the kind, and what is asked for. Days are whole numbers since 1970-01-01 (UTC), both included. */
export const RESTORE = 'restore';
export const restoreArgs = z.object({
  since_day: z.int().nullable(),
  until_day: z.int().nullable(),
  /** null: every trace of the days. */
  trace_ids: z.array(z.string()).nullable(),
});
export type RestoreArgs = z.infer<typeof restoreArgs>;
