// The job that resolves incidents which are over.
import type { Job } from './job.ts';

const MINUTE_MS = 60_000;

/** What the keeper of incidents does as of an instant. */
export interface Incidents {
  /**
   * Result: incidents that were open, and those of them that were resolved; none while failing traces wait to be counted (behind),
   * as an incident may be thought over that is not.
   */
  resolveQuiet: (now: number, signal: AbortSignal) => Promise<{ open: number; resolved: number; behind: boolean }>;
}

export function incidentJobs(incidents: Incidents): Job[] {
  return [
    {
      name: 'incidents',
      cron: '* * * * *',
      timeout_ms: 5 * MINUTE_MS,
      run: async ({ now, signal }) => ({ ...(await incidents.resolveQuiet(now, signal)) }),
    },
  ];
}
