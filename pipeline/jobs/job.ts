// Types of a scheduled job.
import type { Logger } from '../../ops/platform/logger.ts';

export interface JobContext {
  /** Instant as of which the job works, milliseconds since the epoch; usually the current time. */
  now: number;
  /**
   * Aborts when the job must stop: it took too long, the worker stops, or another worker has taken
   * the job over. Finished work stays.
   */
  signal: AbortSignal;
  log: Logger;
  /**
   * Arguments of the call that requested the run; absent in scheduled runs, and in calls without
   * arguments.
   */
  args?: unknown;
}

/** Result of a run, shown to the operator. */
export type JobResult = Record<string, number | string | boolean | null>;

export interface Job {
  name: string;
  /** Schedule: minute, hour, day of month, month, day of week; UTC. */
  cron: string;
  /** Timeout of a run, milliseconds. */
  timeout_ms: number;
  /** Pause before a failed slot is retried, milliseconds; five minutes unless given. */
  retry_ms?: number;
  /** Runs the job. A repeat, also for the same instant, must do no harm. */
  run: (context: JobContext) => Promise<JobResult>;
}
