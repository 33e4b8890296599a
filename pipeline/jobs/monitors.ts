// Scheduled job that evaluates monitors every minute.
import { JOB_SCHEDULES } from '../../schemas/job_schedules.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { createMonitors } from '../monitors/run.ts';
import { createSender } from '../monitors/send.ts';
import type { Job } from './job.ts';

/** A run begins statements for 50 seconds, and each takes at most 5. */
const TIMEOUT_MS = 59_000;

export interface MonitorJobDeps {
  log: Log;
  clickhouse: ClickHouse;
  onPublished: (event: string) => void;
  onProblem: ReportProblem;
}

export function monitorJob({ log, clickhouse, onPublished, onProblem }: MonitorJobDeps): Job {
  return {
    name: 'monitors',
    cron: JOB_SCHEDULES.monitors,
    timeout_ms: TIMEOUT_MS,
    // A failed run must not keep the next minutes from being evaluated.
    retry_ms: 0,
    run: createMonitors({
      clickhouse,
      open: async () => ({
        monitors: await watch(log, 'monitors', onProblem),
        states: await watch(log, 'monitor_states', onProblem),
      }),
      send: createSender(log, onPublished),
    }),
  };
}
