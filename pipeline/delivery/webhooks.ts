// Assembles the webhooks of one worker: receivers, fan-out of platform events, sender, and the log
// of attempts. Any number of workers share the queues.
import type { Logger } from '../../ops/platform/logger.ts';
import * as metrics from '../../ops/platform/metrics.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { WebhookDeadLetters } from '../../ops/exchange/webhook_queue.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { RETRY } from '../domain/webhooks/retry.ts';
import { createDeadLetterStore } from '../queues/dead_letters.ts';
import { createResolve, type Resolve } from './ssrf.ts';
import { WebhookBacklog } from './webhook_backlog.ts';
import { WebhookClient } from './webhook_client.ts';
import { WebhookFanout } from './webhook_fanout.ts';
import { WebhookLog } from './webhook_log.ts';
import { WebhookSender, type WebhookTimings } from './webhook_sender.ts';
import { type AlertTargetOf, WebhookTargets } from './webhook_targets.ts';

const GAUGES_MS = 1000;
export const WEBHOOK_TIMINGS: WebhookTimings = { ...RETRY, timeoutMs: 10_000, ackWaitMs: 30_000 };

export interface WebhooksOptions {
  log: Log;
  logger: Logger;
  clickhouse: Pick<ClickHouse, 'execute'>;
  sealer: Sealer;
  /** True to allow only receivers on the public Internet, as outside development. */
  publicOnly: boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
  alertTargetOf?: AlertTargetOf;
  timings?: WebhookTimings;
  resolve?: Resolve;
}

export interface Webhooks {
  /** Stops within seconds. Deliveries under way are given back to the queue. */
  stop(): Promise<void>;
}

/** Starts the fan-out and the sender. */
export async function startWebhooks(options: WebhooksOptions): Promise<Webhooks> {
  const { log, logger, now } = options;
  const targets = await WebhookTargets.open(log, {
    sealer: options.sealer,
    now,
    onProblem: (problem, cause) => {
      logger.warn({ err: cause }, problem);
    },
    ...(options.alertTargetOf === undefined ? {} : { alertTargetOf: options.alertTargetOf }),
  });
  const deadLetters = await WebhookDeadLetters.open(log);
  const deadLetter = createDeadLetterStore(log, now);
  const backlog = new WebhookBacklog(log, logger);
  const client = new WebhookClient({ publicOnly: options.publicOnly, resolve: options.resolve ?? createResolve() });
  const tries = new WebhookLog({
    clickhouse: options.clickhouse,
    logger,
    onDropped: (rows) => {
      metrics.webhookLogDroppedTotal.inc(rows);
    },
  });
  const sender = new WebhookSender({
    log,
    logger,
    targets,
    client,
    deadLetters,
    tries,
    deadLetter,
    timings: options.timings ?? WEBHOOK_TIMINGS,
    now,
    observe: (outcome, seconds) => {
      metrics.webhookDeliveriesTotal.inc({ outcome });
      if (seconds !== null) metrics.webhookAttemptSeconds.observe(seconds);
    },
  });
  const fanout = new WebhookFanout({
    log,
    logger,
    targets,
    backlog,
    deadLetters,
    deadLetter,
    now,
    observe: (deliveries, overflown) => {
      metrics.webhookQueuedTotal.inc(deliveries);
      if (overflown > 0) metrics.webhookDeliveriesTotal.inc({ outcome: 'overflown' }, overflown);
    },
  });
  await backlog.poll().catch(() => undefined);
  backlog.start();
  fanout.start();
  sender.start();
  const gauges = setInterval(() => {
    metrics.webhookInFlight.set(sender.inFlight);
    metrics.webhookBacklog.set(backlog.total);
  }, GAUGES_MS);
  return {
    async stop() {
      clearInterval(gauges);
      await fanout.stop();
      await sender.stop();
      await tries.stop();
      backlog.stop();
      client.close();
      targets.close();
    },
  };
}
