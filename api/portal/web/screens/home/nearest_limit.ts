// The resource of a budget that is nearest its limit. Pure.
import type { components } from '../../client/contract.d.ts';

type Budget = components['schemas']['Budget'];
const RESOURCES = ['tokens', 'storage_mb', 'sandbox_seconds', 'cost_usd'] as const;

interface NearestLimit {
  resource: (typeof RESOURCES)[number];
  used: number;
  /** The hard limit, else the soft one, of which `percentage` is. */
  limit: number;
  percentage: number;
  exceeded: boolean;
}

/** Returns the resource with the largest share of its limit; null where no limit is set. */
export function nearestLimit(budget: Pick<Budget, (typeof RESOURCES)[number]>): NearestLimit | null {
  let nearest: NearestLimit | null = null;
  for (const resource of RESOURCES) {
    const { used, percentage, status, hard_limit, soft_limit } = budget[resource];
    const limit = hard_limit ?? soft_limit;
    if (limit === null || (nearest !== null && nearest.percentage >= percentage)) continue;
    nearest = { resource, used, limit, percentage, exceeded: status !== 'ok' };
  }
  return nearest;
}
