// What every part of a worker's wiring gets.
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
  onProblem: (problem: string, cause: unknown) => void;
}

/** Counts platform events that were published. */
export const countPublished = (event: string, count = 1): void => {
  metrics.serviceEventsPublishedTotal.inc({ event }, count);
};

/** Tries until it works: the store may come up after the worker, and comes back after being away. */
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
