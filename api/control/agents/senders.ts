// Ids that events name as their agent and that the registry does not have.
import { agentKey } from '../../../schemas/records/agent.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import { sendersOf } from '../../../sql/stores/agent_activity.ts';
import { SENDERS_MAX } from './schema.ts';
import type { AgentStore } from './store.ts';

/** Agents read for one answer: an organization has at most this many registered ones. */
const READ_MAX = 50_000 + SENDERS_MAX + 1;

export interface SendersDeps {
  clickhouse: ClickHouse;
  agents: Pick<AgentStore, 'has'>;
}

/** Returns the senders of the last days that are not registered, the newest event first. */
export async function unregisteredSenders(
  { clickhouse, agents }: SendersDeps,
  org_id: string,
  days: number,
  signal: AbortSignal,
): Promise<{ data: { agent_id: string; last_seen_at: string }[]; meta: { truncated: boolean } }> {
  const rows = await sendersOf(clickhouse, { org_id, days, rows: READ_MAX }, { signal });
  const unknown = rows.filter(({ agent_id }) => !agents.has(agentKey(org_id, agent_id)));
  return {
    data: unknown.slice(0, SENDERS_MAX).map(({ agent_id, last_seen_ms }) => ({
      agent_id,
      last_seen_at: new Date(last_seen_ms).toISOString(),
    })),
    meta: { truncated: unknown.length > SENDERS_MAX },
  };
}
