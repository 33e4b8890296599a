// Assembles the budget keeper of a worker: its watches, its ways to notify, and the reports of this
// worker's landings.
import type { Logger } from '../../ops/platform/logger.ts';
import { queueMail } from '../../ops/exchange/mail_queue.ts';
import { publishRecord } from '../../ops/platform/nats/publish_record.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { EVENTS_SUBJECT } from '../../schemas/streams.ts';
import { reportLanded } from '../../ops/exchange/landing_reports.ts';
import { watch } from '../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { freshDelivery, publishDelivery } from '../../ops/exchange/webhook_queue.ts';
import { serviceEventsCodec } from '../../schemas/codec.ts';
import { ALERT_TARGET_ID, type BudgetRecord } from '../../schemas/records/budget.ts';
import { orgKey, ownerOf } from '../../schemas/records/org.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import type { Policies } from '../settings/org_policies.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import type { Prepared } from '../worker/prepare.ts';
import { UsageReports } from './feed.ts';
import { BudgetKeeper, type KeeperDeps } from './keeper.ts';
import { KeyBudgets } from './key_budgets.ts';

const PUBLISH_TIMEOUT_MS = 3000;

export interface BudgetsOptions {
  log: Log;
  logger: Logger;
  clickhouse: ClickHouse;
  policies: Policies;
  /** Opened by records.ts. */
  records: WatchedBucket<BudgetRecord>;
  isLeader: () => boolean;
  onPublished: (event: string) => void;
}

export interface Budgets {
  keeper: BudgetKeeper;
  /** Reports a landing of this worker, with the use of organizations that have a budget. */
  reportLanded: (prepared: Pick<Prepared, 'usage' | 'progress'>) => void;
  /**
   * Repeats how far the partitions are: a report may have been lost, and nothing may land after it.
   */
  reportProgress: (
    states: Iterable<
      Pick<PartitionState, 'partition' | 'epoch' | 'landed_through' | 'read_through'> & { behind: boolean }
    >,
  ) => void;
  stop: () => Promise<void>;
}

/** Resolves when every budget there is has been loaded. */
export async function openBudgets({
  log,
  logger,
  clickhouse,
  policies,
  records,
  isLeader,
  onPublished,
}: BudgetsOptions): Promise<Budgets> {
  const onProblem = (problem: string, cause: unknown) => {
    logger.warn({ err: cause }, problem);
  };
  const [orgs, apiKeys] = await Promise.all([watch(log, 'orgs', onProblem), watch(log, 'api_keys', onProblem)]);
  const keyBudgets = new KeyBudgets(apiKeys);
  const keeper = await BudgetKeeper.open({
    log,
    records,
    clickhouse,
    logger,
    now: () => Date.now(),
    isLeader,
    ruleOf: (org_id) => policies.of(org_id),
    orgOf: (org_id) => {
      const org = orgs.get(orgKey(org_id));
      return org === undefined ? null : { name: org.name, owner_email: ownerOf(org).email };
    },
    ...notificationsOf(log, onPublished),
  });
  const reports = new UsageReports();
  return {
    keeper,
    reportLanded: (prepared) => {
      const landed = reports.ofLanding(prepared, {
        isBudgeted: (org_id) => keeper.isBudgeted(org_id),
        isKeyBudgeted: (org_id, key_id) => keyBudgets.has(org_id, key_id),
        limitedAgents: (org_id) => keeper.limitedAgents(org_id),
      });
      if (!log.nc.isClosed()) reportLanded(log.nc, landed);
    },
    reportProgress: (states) => {
      if (log.nc.isClosed()) return;
      reportLanded(
        log.nc,
        [...states].map((state) => reports.ofProgress(state)),
      );
    },
    stop: async () => {
      await keeper.stop();
      orgs.close();
      apiKeys.close();
    },
  };
}

/** How the keeper notifies: platform events to EVENTS, and alerts as mails and webhooks. */
function notificationsOf(
  log: Log,
  onPublished: BudgetsOptions['onPublished'],
): Pick<KeeperDeps, 'publish' | 'mail' | 'alertWebhook'> {
  return {
    publish: async (org_id, events) => {
      const published = events.map(({ event_id, event, payload }) => ({
        event_id,
        event,
        org_id,
        created_at: Date.now(),
        payload: JSON.stringify(payload),
      }));
      const msgID = published.map(({ event_id }) => event_id).join('+');
      await publishRecord(
        log,
        EVENTS_SUBJECT,
        serviceEventsCodec,
        { events: published },
        { msgID, timeoutMs: PUBLISH_TIMEOUT_MS },
      );
      for (const { event } of published) onPublished(event);
    },
    mail: (mail) => queueMail(log, mail),
    alertWebhook: ({ org_id }, { event_id, event, payload }) => {
      const target = { org_id, target_kind: 'alert' as const, target_id: ALERT_TARGET_ID };
      return publishDelivery(
        log,
        freshDelivery({ ...target, event_id, event, body: JSON.stringify(payload), created_at: Date.now() }),
        'alert',
      );
    },
  };
}
