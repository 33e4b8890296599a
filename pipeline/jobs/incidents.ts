// The job that resolves incidents which are over.
import type { Job } from './job.ts';

const MINUTE_MS = 60_000;

/** What the keeper of incidents does as of an instant. */
export interface Incidents {
  /** Result: incidents that were open, and those of them that were resolved. */
  resolveQuiet: (now: number, signal: AbortSignal) => Promise<{ open: number; resolved: number }>;
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
