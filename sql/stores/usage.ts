// Reads of the usage table that both the API and the pipeline need.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery, type QueryOptions } from '../client/query.ts';

const count = z.coerce.number();
/**
 * Maximum bytes of the ids of one read: the server accepts parameters of up to 128 KiB, escapes
 * included.
 */
const AGENT_BYTES_MAX = 60_000;

const periodSums = defineQuery({
  name: 'usage_period_sums',
  file: 'usage/period_sums.sql',
  params: z.object({
    org_id: z.string(),
    from: z.int(),
    until: z.int(),
    agents: z.array(z.string()),
    all_agents: z.literal(true).optional(),
    of_key: z.literal(true).optional(),
    key_id: z.string().optional(),
  }),
  row: z.object({
    partition: z.int(),
    agent: z.string(),
    log_seq: count,
    tokens: count,
    storage_bytes: count,
    sandbox_micros: count,
    /** Decimal text. */
    cost_usd: z.string(),
  }),
});

/** Use of one agent, or of all agents that were not asked for, from one partition of the log. */
export interface PeriodSum {
  partition: number;
  /** Empty for the sum of all agents that were not asked for. */
  agent_id: string;
  /** Greatest log position among the rows. */
  log_seq: number;
  tokens: number;
  storage_bytes: number;
  sandbox_micros: number;
  /** Decimal text. */
  cost_usd: string;
}

interface PeriodAsked {
  org_id: string;
  /** Counts the events of this API key alone. */
  key_id?: string;
  from: number;
  until: number;
  /** Agents whose use is returned separately. */
  agents: readonly string[];
}

/** Use of each API key since the starts of a day, a week and a month, milliseconds since the epoch. */
export const readKeySums = defineQuery({
  name: 'usage_key_sums',
  file: 'usage/key_sums.sql',
  params: z.object({ org_id: z.string(), day: z.int(), week: z.int(), month: z.int() }),
  row: z.object({
    key_id: z.string(),
    day_tokens: count,
    day_cost_usd: z.string(),
    week_tokens: count,
    week_cost_usd: z.string(),
    month_tokens: count,
    month_cost_usd: z.string(),
  }),
});

/**
 * Returns the use of an organization from `from` until `until` (milliseconds since the epoch, whole
 * hours). If the agents do not fit into one read, the sums of every agent come separately.
 */
export async function readPeriodSums(
  client: ClickHouse,
  { org_id, key_id, from, until, agents }: PeriodAsked,
  options?: QueryOptions,
): Promise<PeriodSum[]> {
  const fits = agents.reduce((bytes, agent_id) => bytes + Buffer.byteLength(agent_id), 0) <= AGENT_BYTES_MAX;
  const asked = fits ? { agents: [...agents] } : { agents: [], all_agents: true as const };
  const ofKey = key_id === undefined ? {} : { of_key: true as const, key_id };
  const rows = await periodSums(client, { org_id, from, until, ...asked, ...ofKey }, options);
  return rows.map(({ agent, ...sums }) => ({ ...sums, agent_id: agent }));
}
