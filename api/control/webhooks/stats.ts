// Statistics of the webhook endpoints of an organization: ended deliveries from the attempt log,
// waiting ones from the queue, and dead letters from their bucket.
import { z } from 'zod';
import { waitingDeliveries } from '../../../ops/exchange/webhook_queue.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { ApiError } from '../../http/errors.ts';
import type { WebhookStats } from './schema.ts';
import { ENDPOINTS_ORG_MAX, type WebhooksDeps } from './webhooks.ts';

/** The addresses of alerts are receivers too; an organization has few. */
const RECEIVERS_MAX = 2 * ENDPOINTS_ORG_MAX;
const count = z.coerce.number().pipe(z.int());

const readStats = defineQuery({
  name: 'webhook_stats',
  file: 'webhooks/stats.sql',
  params: z.object({ org_id: z.string(), days: z.int(), rows: z.int() }),
  row: z.object({
    target_id: z.string(),
    attempts: count,
    delivered: count,
    failed: count,
    dead_lettered: count,
    last_ms: count,
  }),
});

/**
 * Returns the statistics of every endpoint, newest endpoint first.
 * @throws ApiError upstream_unavailable
 */
export async function webhookStatsOf(
  deps: WebhooksDeps & { clickhouse: ClickHouse },
  org_id: string,
  days: number,
  signal: AbortSignal,
): Promise<WebhookStats[]> {
  const [rows, queue] = await Promise.all([
    readStats(deps.clickhouse, { org_id, days, rows: RECEIVERS_MAX }, { signal }),
    readQueue(deps, org_id),
  ]);
  const byId = new Map(rows.map((row) => [row.target_id, row]));
  return deps.store.list(org_id).map(({ webhook_id }) => {
    const row = byId.get(webhook_id);
    const { attempts = 0, delivered = 0, failed = 0, dead_lettered = 0, last_ms } = row ?? {};
    const ended = delivered + failed + dead_lettered;
    return {
      webhook_id,
      attempts,
      delivered,
      failed,
      dead_lettered,
      success_rate: ended === 0 ? null : delivered / ended,
      last_attempt_at: last_ms === undefined ? null : new Date(last_ms).toISOString(),
      waiting: queue.waiting.get(webhook_id) ?? 0,
      dead_letters: queue.dead.get(webhook_id) ?? 0,
    };
  });
}

async function readQueue({ log, deadLetters }: WebhooksDeps, org_id: string) {
  try {
    const [waiting, keys] = await Promise.all([waitingDeliveries(log, org_id), deadLetters.keys(org_id)]);
    const dead = new Map<string, number>();
    for (const key of keys) {
      const id = key.split('.')[1] ?? '';
      dead.set(id, (dead.get(id) ?? 0) + 1);
    }
    return { waiting, dead };
  } catch (cause) {
    throw new ApiError('upstream_unavailable', 'The queue of deliveries cannot be read. Try again.', { cause });
  }
}
