// The budgets of all orgs, as a worker watches them: for the keeper, and for the addresses of alert webhooks.
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { ALERT_TARGET_ID, alertSealContext, type BudgetRecord } from '../../schemas/records/budget.ts';
import { orgKey } from '../../schemas/records/org.ts';
import type { AlertTargetOf } from '../delivery/webhook_targets.ts';

/** Where an org's alerts are sent, and what signs them; null where it has no alert webhook (any more). */
export function alertTargets(records: WatchedBucket<BudgetRecord>, sealer: Sealer): AlertTargetOf {
  return (org_id, target_id) => {
    const alerts = target_id === ALERT_TARGET_ID ? records.get(orgKey(org_id))?.alerts : null;
    if (alerts?.webhook_url == null || alerts.sealed_secret === null) return null;
    return { url: alerts.webhook_url, secrets: [sealer.open(alerts.sealed_secret, alertSealContext(org_id))] };
  };
}
