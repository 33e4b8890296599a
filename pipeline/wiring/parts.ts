// The clients and identity that the wiring of every part takes, and two helpers that it shares.
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import type { Env } from '../../ops/platform/env.ts';
import type { Logger } from '../../ops/platform/logger.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { backoffMs } from '../queues/backoff.ts';

export interface WorkerParts {
  env: Env;
  logger: Logger;
  log: Log;
  clickhouse: ClickHouse;
  workerId: string;
  onProblem: ReportProblem;
}

/** Counts published platform events. */
export const countPublished = (event: string, count = 1): void => {
  metrics.serviceEventsPublishedTotal.inc({ event }, count);
};

/**
 * Retries `task` with backoff until it resolves. The store may come up after the worker, and may
 * become unavailable at any time.
 */
export async function untilDone<T>(logger: Logger, what: string, task: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt += 1) {
    try {
      return await task();
    } catch (error) {
      logger.warn({ err: error, attempt }, `${what}: trying again`);
      await new Promise((resolve) => setTimeout(resolve, backoffMs(attempt)));
    }
  }
}
