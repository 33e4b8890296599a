// Reads an analytics measure over a window that moves: its value at evenly spaced instants, each over
// the time before it, for the most extreme groups. A row counts in every window that it lies in. The
// read is bounded in time, memory, instants and groups.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { type AnalyticsQuery, planRolling, type Windows } from './plan.ts';

/** Groups of one read: the most extreme ones. */
export const ROLLING_GROUPS_MAX = 10;
const RESULT_BYTES_MAX = 16_000_000;

const row = z.object({ d0: z.string(), instants: z.array(z.int()), found: z.array(z.number().nullable()) });

export interface RollingGroup {
  /** Value of the dimension; empty without one. */
  group: string;
  /** Value at each instant; null for an instant without rows. */
  values: (number | null)[];
}

/**
 * Returns the most extreme groups, one more than ROLLING_GROUPS_MAX when there are more.
 * @param query its since and until are ignored
 * @throws the error of the store
 */
export async function readRolling(
  clickhouse: ClickHouse,
  query: AnalyticsQuery,
  windows: Windows,
  { order, timeoutMs, signal }: { order: 'largest' | 'smallest'; timeoutMs: number; signal: AbortSignal },
): Promise<RollingGroup[]> {
  const rows = await clickhouse.rows<unknown>({
    name: 'analytics_rolling',
    ...planRolling(query, windows, order, ROLLING_GROUPS_MAX + 1),
    timeoutMs,
    bytesMax: RESULT_BYTES_MAX,
    signal,
  });
  return rows.map((one) => {
    const { d0, instants, found: measured } = row.parse(one);
    const values = new Array<number | null>(windows.count).fill(null);
    for (const [index, at] of instants.entries()) values[at] = measured[index] ?? null;
    return { group: d0, values };
  });
}
