// Scheduled job that resolves incidents that are over.
import { JOB_SCHEDULES } from '../../schemas/job_schedules.ts';
import type { Job } from './job.ts';

const MINUTE_MS = 60_000;

/** Operations of the incident keeper, each as of an instant. */
export interface Incidents {
  /**
   * Resolves incidents without recent failing traces. Returns the numbers of open and resolved
   * incidents. Resolves none while failing traces wait to be counted (`behind`), because an
   * incident may only seem to be over.
   */
  resolveQuiet: (now: number, signal: AbortSignal) => Promise<{ open: number; resolved: number; behind: boolean }>;
}

export function incidentJobs(incidents: Incidents): Job[] {
  return [
    {
      name: 'incidents',
      cron: JOB_SCHEDULES.incidents,
      timeout_ms: 5 * MINUTE_MS,
      run: async ({ now, signal }) => ({ ...(await incidents.resolveQuiet(now, signal)) }),
    },
  ];
}
