// Reads from the store what the answers of a queue became: scores are kept there alone, so a score
// that was deleted is missing here too.
import { z } from 'zod';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { defineQuery } from '../../../sql/client/query.ts';
import { type ItemRecord, type QueueRecord, scorePrefixOf } from '../../../schemas/records/annotation.ts';

/** Maximum scores that one read returns. */
const ROWS_MAX = 100_000;
const flag = z.literal(true).optional();

const readQueueScores = defineQuery({
  name: 'annotation_scores',
  file: 'user_scores/of_queue.sql',
  params: z.object({
    org_id: z.string(),
    prefix: z.string(),
    from_ms: z.int(),
    to_ms: z.int(),
    trace_ids: z.array(z.string()).optional(),
    comments: flag,
    bare: flag,
    rows: z.int(),
  }),
  row: z.object({
    score_id: z.string(),
    trace_id: z.string(),
    name: z.string(),
    data_type: z.enum(['numeric', 'boolean', 'categorical']),
    number: z.number().nullable(),
    text: z.string(),
    said: z.string(),
  }),
});
export type QueueScore = Awaited<ReturnType<typeof readQueueScores>>[number];

/**
 * Returns the stored scores of some items of a queue, by id.
 * @param withComments reads the comments too; without them any number of items may be given
 */
export async function scoresOfItems(
  clickhouse: ClickHouse,
  { org_id, queue_id }: QueueRecord,
  items: readonly ItemRecord[],
  withComments: boolean,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, QueueScore>> {
  const answered = items.filter(({ answers }) => answers.some(({ scores }) => scores.length > 0));
  const traces = answered.flatMap((item) => item.traces);
  if (traces.length === 0) return new Map();
  const times = traces.map(({ started_ms }) => started_ms);
  const rows = await readQueueScores(
    clickhouse,
    {
      org_id,
      prefix: scorePrefixOf(org_id, queue_id),
      from_ms: times.reduce((a, b) => Math.min(a, b)),
      to_ms: times.reduce((a, b) => Math.max(a, b)),
      ...(withComments ? { trace_ids: traces.map(({ trace_id }) => trace_id), comments: true } : { bare: true }),
      rows: ROWS_MAX,
    },
    { signal },
  );
  return new Map(rows.map((row) => [row.score_id, row]));
}
