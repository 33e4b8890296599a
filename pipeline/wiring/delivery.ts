// Wiring of delivery: webhooks, mails, the audit log and scores given by people. All of it starts
// before ClickHouse answers.
import * as metrics from '../../ops/platform/metrics.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { BudgetRecord } from '../../schemas/records/budget.ts';
import { alertTargets } from '../settings/budget_records.ts';
import { createAuditLander } from '../delivery/audit_lander.ts';
import { createMailer } from '../delivery/mail.ts';
import { PendingScores } from '../delivery/pending_scores.ts';
import { createScoreLander } from '../delivery/score_lander.ts';
import { startWebhooks } from '../delivery/webhooks.ts';
import type { PiiPolicies } from '../settings/pii_policies.ts';
import { countPublished, type WorkerParts } from './parts.ts';

interface DeliveryParts {
  sealer: Sealer;
  budgetRecords: WatchedBucket<BudgetRecord>;
  piiPolicies: Pick<PiiPolicies, 'of'>;
  /** Resolves once the tables of the store exist. */
  storeUp: Promise<unknown>;
}

/**
 * Starts every delivery. `stop` gives deliveries under way some seconds to finish; the queues
 * redeliver the rest to another worker.
 */
export async function startDelivery(
  { env, log, logger, clickhouse }: WorkerParts,
  parts: DeliveryParts,
): Promise<{ stop: () => Promise<void> }> {
  const { sealer, budgetRecords, piiPolicies, storeUp } = parts;
  const now = () => Date.now();
  const observe = (queue: string, result: 'done' | 'retried' | 'dead', count: number): void => {
    metrics.queueMessagesTotal.inc({ queue, result }, count);
  };
  const webhooks = await startWebhooks({
    log,
    logger,
    clickhouse,
    sealer,
    alertTargetOf: alertTargets(budgetRecords, sealer),
    publicOnly: env.SERVICE_ENV !== 'development',
    now,
  });
  const mailer = createMailer({
    log,
    logger,
    smtpUrl: env.SERVICE_SMTP_URL,
    from: env.SERVICE_MAIL_FROM,
    now,
    observe,
  });
  mailer.start();
  const audit = createAuditLander({
    log,
    logger,
    clickhouse,
    now,
    observe,
    onLanded: (rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table: 'audit_log' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'audit_log' }, rows);
    },
    onPublished: countPublished,
    storeUp,
  });
  audit.start();
  const scores = createScoreLander({
    log,
    logger,
    clickhouse,
    redactorOf: piiPolicies.of,
    now,
    observe,
    onLanded: (rows, seconds) => {
      metrics.clickhouseInsertSeconds.observe({ table: 'user_scores' }, seconds);
      metrics.clickhouseInsertRowsTotal.inc({ table: 'user_scores' }, rows);
    },
    storeUp,
  });
  scores.start();
  const pendingScores = new PendingScores({ log, logger, clickhouse, now, observe });
  pendingScores.start();
  return {
    stop: async () => {
      await Promise.all([audit.stop(), scores.stop(), pendingScores.stop(), mailer.stop(), webhooks.stop()]);
    },
  };
}
