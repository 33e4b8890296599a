// Jobs of budgets: thresholds that the run-rate will reach, and the start of a period.
import type { Job } from './job.ts';

const MINUTE_MS = 60_000;

/** What the keeper of budgets does as of an instant. */
export interface Budgets {
  tellAsOf: (now: number, signal: AbortSignal) => Promise<{ orgs: number; alerts: number }>;
  startOver: (now: number, signal: AbortSignal) => Promise<number>;
}

export function budgetJobs(budgets: Budgets): Job[] {
  return [
    {
      name: 'alerts',
      cron: '12 * * * *',
      timeout_ms: 30 * MINUTE_MS,
      run: async ({ now, signal }) => ({ ...(await budgets.tellAsOf(now, signal)) }),
    },
    {
      // Counters start over by themselves, as they are sums over the hours of a period: what is left to do is to begin a list
      // of what is told in it.
      name: 'budget-period',
      cron: '0 0 * * *',
      timeout_ms: 10 * MINUTE_MS,
      run: async ({ now, signal }) => ({ orgs: await budgets.startOver(now, signal) }),
    },
  ];
}
