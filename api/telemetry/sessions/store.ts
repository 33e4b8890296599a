// The reads of sessions and end users from ClickHouse.
import { z } from 'zod';
import { defineQuery } from '../../../sql/client/query.ts';

const whole = z.coerce.number().pipe(z.int());
const flag = z.literal(true).optional();

/**
 * Exactly one of by_session and by_user is set, and exactly one of filtered and unfiltered:
 * filtered if any other filter is set. Times are milliseconds since the epoch.
 */
const filters = {
  org_id: z.string(),
  by_session: flag,
  by_user: flag,
  filtered: flag,
  unfiltered: flag,
  session_id: z.string().optional(),
  user_id: z.string().optional(),
  agent_id: z.string().optional(),
  since_ms: z.int().optional(),
  until_ms: z.int().optional(),
};
export type GroupFilters = z.input<z.ZodObject<typeof filters>>;

const group = z.object({
  id: z.string(),
  traces: whole,
  spans: whole,
  failed_traces: whole,
  input_tokens: whole,
  output_tokens: whole,
  /** Decimal text, in USD. */
  cost: z.string(),
  first_ms: whole,
  last_ms: whole,
});
/** Totals of the traces of one session or end user. */
export type Group = z.output<typeof group>;

export const readGroups = defineQuery({
  name: 'sessions',
  file: 'sessions/page.sql',
  params: z.object({
    ...filters,
    rows: z.int(),
    skip: z.int(),
    from_last_ms: z.int().optional(),
    from_id: z.string().optional(),
  }),
  row: group,
});
/** Returns one row. */
export const readGroupTotal = defineQuery({
  name: 'sessions_total',
  file: 'sessions/total.sql',
  params: z.object(filters),
  row: z.object({ total: whole }),
});
