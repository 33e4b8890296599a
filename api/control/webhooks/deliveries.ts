// The delivery attempts of a webhook endpoint, read from ClickHouse.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { type DeliveryItem, deliveryItem } from './schema.ts';

const filters = {
  org_id: z.string(),
  target_id: z.string(),
  event_id: z.string().optional(),
  event: z.string().optional(),
  outcome: deliveryItem.shape.outcome.optional(),
};

const readDeliveries = defineQuery({
  name: 'webhook_deliveries',
  file: 'webhooks/deliveries.sql',
  params: z.object({ ...filters, rows: z.int(), skip: z.int() }),
  row: z.object({
    event_id: z.string(),
    event: z.string(),
    attempt: z.int(),
    outcome: deliveryItem.shape.outcome,
    status_code: z.int(),
    error: z.string(),
    duration_ms: z.int(),
    at: z.string(),
  }),
});

const readTotal = defineQuery({
  name: 'webhook_deliveries_total',
  file: 'webhooks/deliveries_total.sql',
  params: z.object(filters),
  row: z.object({ total: z.coerce.number().pipe(z.int()) }),
});

export interface DeliveriesAsked {
  org_id: string;
  webhook_id: string;
  event_id?: string | undefined;
  event?: string | undefined;
  outcome?: DeliveryItem['outcome'] | undefined;
  limit: number;
  offset: number;
}

/**
 * Returns one page of attempts, newest first, and their number. An attempt appears within seconds.
 */
export async function listDeliveries(
  clickhouse: ClickHouse,
  { org_id, webhook_id, event_id, event, outcome, limit, offset }: DeliveriesAsked,
  signal: AbortSignal,
): Promise<{ items: DeliveryItem[]; total: number }> {
  const asked = { org_id, target_id: webhook_id, event_id, event, outcome };
  const [rows, [count]] = await Promise.all([
    readDeliveries(clickhouse, { ...asked, rows: limit, skip: offset }, { signal }),
    readTotal(clickhouse, asked, { signal }),
  ]);
  const items = rows.map((row) => ({
    ...row,
    status_code: row.status_code === 0 ? null : row.status_code,
    error: row.error === '' ? null : row.error,
    at: new Date(row.at).toISOString(),
  }));
  return { items, total: count?.total ?? 0 };
}
