// What a scheduled job is.
import type { Logger } from '../../ops/platform/logger.ts';

export interface JobContext {
  /** The instant as of which the job works, milliseconds since the epoch: usually now. */
  now: number;
  /** Aborts when the job has to stop: it took too long, the worker ends, or another worker has it. What was done stays. */
  signal: AbortSignal;
  log: Logger;
  /** What whoever called for the run asked for; absent in scheduled runs, and in calls without it. */
  args?: unknown;
}

/** What a run did, in numbers; shown to the operator. */
export type JobResult = Record<string, number | string | boolean | null>;

export interface Job {
  name: string;
  /** Minute, hour, day of month, month, day of week; UTC. */
  cron: string;
  /** Milliseconds after which a run is told to stop. */
  timeout_ms: number;
  /** Must do no harm when it runs again, for the same instant too. */
  run: (context: JobContext) => Promise<JobResult>;
}
