// Reads of the usage table that more than one process needs.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { defineQuery, type QueryOptions } from '../client/query.ts';

const count = z.coerce.number();
/** Bytes of the ids that one read names: the server takes parameters of up to 128 KiB, with room for escapes. */
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

/** What one agent, or all that were not asked for, used of one partition of the log. */
export interface PeriodSum {
  partition: number;
  /** Empty for all agents that were not asked for. */
  agent_id: string;
  /** Greatest place among the rows. */
  log_seq: number;
  tokens: number;
  storage_bytes: number;
  sandbox_micros: number;
  /** Decimal text. */
  cost_usd: string;
}

/**
 * What an org used from `from` until `until` (milliseconds, whole hours). With more names than a read takes, every agent's
 * sums come apart.
 * @param agents those whose use is told apart
 */
export async function readPeriodSums(
  client: ClickHouse,
  { org_id, from, until, agents }: { org_id: string; from: number; until: number; agents: readonly string[] },
  options?: QueryOptions,
): Promise<PeriodSum[]> {
  const fits = agents.reduce((bytes, agent_id) => bytes + Buffer.byteLength(agent_id), 0) <= AGENT_BYTES_MAX;
  const asked = fits ? { agents: [...agents] } : { agents: [], all_agents: true as const };
  const rows = await periodSums(client, { org_id, from, until, ...asked }, options);
  return rows.map(({ agent, ...sums }) => ({ ...sums, agent_id: agent }));
}
