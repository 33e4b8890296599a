// Reads of the usage table that more than one process needs.
import { z } from 'zod';
import { defineQuery } from './query.ts';

const count = z.coerce.number();

/** What an org used from `from` until `until` (milliseconds, whole hours): one row a log partition and agent. */
export const periodSums = defineQuery({
  name: 'usage_period_sums',
  file: 'usage/period_sums.sql',
  params: z.object({ org_id: z.string(), from: z.int(), until: z.int() }),
  row: z.object({
    partition: z.int(),
    agent_id: z.string(),
    log_seq: count,
    tokens: count,
    storage_bytes: count,
    sandbox_micros: count,
    /** Decimal text. */
    cost_usd: z.string(),
  }),
});
