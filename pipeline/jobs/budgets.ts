// Scheduled jobs of budgets: alerts on thresholds that the run rate will reach, and the start of a
// period.
import { JOB_SCHEDULES } from '../../schemas/job_schedules.ts';
import type { Job } from './job.ts';

const MINUTE_MS = 60_000;

/** Operations of the budget keeper, each as of an instant. */
export interface Budgets {
  notifyAsOf: (now: number, signal: AbortSignal) => Promise<{ orgs: number; alerts: number }>;
  startOver: (now: number, signal: AbortSignal) => Promise<number>;
}

export function budgetJobs(budgets: Budgets): Job[] {
  return [
    {
      name: 'alerts',
      cron: JOB_SCHEDULES.alerts,
      timeout_ms: 30 * MINUTE_MS,
      run: async ({ now, signal }) => ({ ...(await budgets.notifyAsOf(now, signal)) }),
    },
    {
      // Use needs no reset, because it is the sum over the hours of a period. The job only starts
      // the period's list of sent alerts.
      name: 'budget-period',
      cron: JOB_SCHEDULES['budget-period'],
      timeout_ms: 10 * MINUTE_MS,
      run: async ({ now, signal }) => ({ orgs: await budgets.startOver(now, signal) }),
    },
  ];
}
