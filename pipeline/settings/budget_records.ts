// Finds the alert webhooks of organizations in their watched budget records.
import type { Sealer } from '../../ops/platform/sealing.ts';
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import { ALERT_TARGET_ID, alertSealContext, type BudgetRecord } from '../../schemas/records/budget.ts';
import { orgKey } from '../../schemas/records/org.ts';
import type { AlertTargetOf } from '../delivery/webhook_targets.ts';

/**
 * Returns a function that finds the URL and the secret of an organization's alert webhook; it
 * returns null where there is none.
 */
export function alertTargets(records: WatchedBucket<BudgetRecord>, sealer: Sealer): AlertTargetOf {
  return (org_id, target_id) => {
    const alerts = target_id === ALERT_TARGET_ID ? records.get(orgKey(org_id))?.alerts : null;
    if (alerts?.webhook_url == null || alerts.sealed_secret === null) return null;
    return { url: alerts.webhook_url, secrets: [sealer.open(alerts.sealed_secret, alertSealContext(org_id))] };
  };
}
