// Tells whether the spans that landed before the projections of days have them: the engine makes them in
// the background, and until then reads of days would read all of their rows, while hours are there.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery, type QueryOptions } from '../client/query.ts';

/** While the engine makes the projections, it is asked again after this time. */
const ASK_AGAIN_MS = 10_000;

/** Databases that have the projections: Infinity; others: the time of the next question. */
const known = new WeakMap<ClickHouse, number>();

const readUnfinished = defineQuery({
  name: 'analytics_days_unfinished',
  file: 'analytics/days_unfinished.sql',
  params: z.object({}),
  row: z.object({ unfinished: z.int() }),
});

/** Returns true when reads of days need no rows of older spans. With shards, the answer is that of one of them. */
export async function hasDays(clickhouse: ClickHouse, options: QueryOptions): Promise<boolean> {
  const until = known.get(clickhouse);
  if (until === Infinity) return true;
  if (until !== undefined && performance.now() < until) return false;
  const unfinished = await readUnfinished(clickhouse, {}, options);
  known.set(clickhouse, unfinished.length === 0 ? Infinity : performance.now() + ASK_AGAIN_MS);
  return unfinished.length === 0;
}
