// Schedules of the scheduled jobs, by name: minute, hour, day of month, month, day of week; UTC. Workers run the jobs
// by this table, and the API shows it to the operator.
export const JOB_SCHEDULES = {
  'agent-drift': '20 2 * * *',
  alerts: '12 * * * *',
  anomalies: '7 * * * *',
  'budget-period': '0 0 * * *',
  forecast: '40 0 * * *',
  incidents: '* * * * *',
  monitors: '* * * * *',
  reprice: '*/5 * * * *',
  retention: '30 3 * * *',
} as const satisfies Record<string, string>;

export const JOB_NAMES = Object.keys(JOB_SCHEDULES) as (keyof typeof JOB_SCHEDULES)[];
