// Wires budgets: the hard limits that admission asks, and the routes that set limits and alerts.
import { queueMail } from '../../ops/exchange/mail_queue.ts';
import { freshDelivery, publishDelivery } from '../../ops/exchange/webhook_queue.ts';
import type { Sealer } from '../../ops/platform/sealing.ts';
import { keyAccount } from '../../schemas/accounts.ts';
import { periodAt } from '../../pipeline/domain/budgets/period.ts';
import { createPriceBook } from '../../pipeline/domain/pricing/pricing.ts';
import { ALERT_TARGET_ID } from '../../schemas/records/budget.ts';
import { ownerOf } from '../../schemas/records/org.ts';
import { type HardLimits, openHardLimits } from '../admission/budget/hard_limits.ts';
import { alertRoutes } from '../control/budgets/alert_routes.ts';
import { budgetRoutes } from '../control/budgets/routes.ts';
import { BudgetStore } from '../control/budgets/store.ts';
import type { Route } from '../http/route.ts';
import { isDevelopment, type WiringParts } from './parts.ts';
import type { Stores } from './stores.ts';

/**
 * The answer to a change of limits waits this long, in milliseconds, for the limits to apply in this process: until the
 * store has said what was used. A busy store may take seconds. While it is unavailable nothing waits, and the limits
 * apply once it is back.
 */
const IN_FORCE_MS = 10_000;

export interface Budgets extends Pick<HardLimits, 'check' | 'isReady'> {
  routes: Route[];
  /** Resolves once the stored budget of an API key applies in this process, after a bounded time. */
  keyInForce: (org_id: string, key_id: string) => Promise<void>;
  close: () => void;
}

/**
 * Opens budgets. Resolves once every budget is loaded; what organizations have used is read afterwards.
 * @param partitions number of partitions of the ingest log
 */
export async function openBudgets(
  parts: WiringParts,
  stores: Stores,
  { sealer, partitions }: { sealer: Sealer; partitions: number },
): Promise<Budgets> {
  const { log, clickhouse, now, onProblem } = parts;
  const { orgs, keys, costs, policies } = stores;
  const budgets = await BudgetStore.open(log, onProblem);
  const limits = await openHardLimits({
    log,
    clickhouse,
    budgets,
    keys,
    prices: createPriceBook((org_id) => costs.pricesOf(org_id).prices),
    partitions,
    ruleOf: (org_id) => policies.get(org_id),
    overageUsdOf: (org_id) => orgs.get(org_id)?.overage_budget_usd ?? null,
    now,
    onProblem,
  });
  return {
    check: limits.check,
    isReady: limits.isReady,
    keyInForce: (org_id, key_id) => limits.inForce(keyAccount(org_id, key_id), IN_FORCE_MS),
    routes: budgetSliceRoutes(parts, stores, { budgets, limits, sealer }),
    close: () => {
      limits.close();
      budgets.close();
    },
  };
}

/** Returns the routes that set the limits and the alerts of budgets. */
export function budgetSliceRoutes(
  parts: WiringParts,
  { orgs, policies }: Stores,
  { budgets, limits, sealer }: { budgets: BudgetStore; limits: HardLimits; sealer: Sealer },
): Route[] {
  const { log, clickhouse, now } = parts;
  const periodOf = (org_id: string) => periodAt(policies.get(org_id), now());
  const limitRoutes = budgetRoutes({
    budgets,
    clickhouse,
    now,
    ruleOf: (org_id) => policies.get(org_id),
    periodOf,
    planOf: (org_id) => orgs.get(org_id)?.plan_name ?? '',
    inForce: (org_id) => limits.inForce(org_id, IN_FORCE_MS),
  });
  const alerts = alertRoutes({
    budgets,
    sealer,
    now,
    periodOf,
    ownerOf: (org_id) => {
      const org = orgs.get(org_id);
      return org === null ? null : { name: org.name, email: ownerOf(org).email };
    },
    mail: (mail) => queueMail(log, mail),
    deliver: (org_id, { event_id, event, payload }) => {
      const target = { org_id, target_kind: 'alert' as const, target_id: ALERT_TARGET_ID };
      const body = JSON.stringify(payload);
      return publishDelivery(log, freshDelivery({ ...target, event_id, event, body, created_at: now() }), 'test');
    },
    development: isDevelopment(parts),
  });
  return [...limitRoutes, ...alerts];
}
