// Writes organizations, API keys and agents straight into KV, many in flight: what the processes of
// a large installation hold in memory.
import { hashKey, KEY_PREFIX } from '../../api/http/auth.ts';
import { type KeyRecord, NO_KEY_LIMITS } from '../../schemas/records/api_key.ts';
import type { Log } from '../../ops/platform/nats/open_log.ts';
import { agentKey, type AgentRecord } from '../../schemas/records/agent.ts';
import { activeMember, orgKey, type OrgRecord } from '../../schemas/records/org.ts';

export const ORGS = 10_000;
export const AGENTS = 100_000;
/** Agents of the first organization; the others share the rest. */
export const AGENTS_OF_FIRST = 20_000;
const IN_FLIGHT_MAX = 2000;
/** A limit, so that every request is counted, that is never reached. */
const PLENTY = 100_000_000;

const AT = '2026-01-01T00:00:00.000Z';
const padded = (index: number): string => String(index).padStart(6, '0');

export const orgIdOf = (index: number): string => `org_bench_${padded(index)}`;
export const ownerIdOf = (index: number): string => `user_bench_${padded(index)}`;
export const rawKeyOf = (index: number): string => `${KEY_PREFIX}bench${padded(index)}`.padEnd(47, 'x');

function orgOf(index: number): OrgRecord {
  return {
    org_id: orgIdOf(index),
    name: `Bench ${index}`,
    plan_name: 'enterprise',
    overage_budget_usd: null,
    rate_limits: { ingest_per_minute: PLENTY, api_per_minute: PLENTY, burst: PLENTY },
    created_at: AT,
    updated_at: AT,
    members: [activeMember({ user_id: ownerIdOf(index), email: `${ownerIdOf(index)}@example.com` }, 'owner', AT)],
    transfer: null,
  };
}

function keyOf(index: number): KeyRecord {
  const key_prefix = rawKeyOf(index).slice(0, 12);
  return {
    id: `ak_bench_${padded(index)}`,
    org_id: orgIdOf(index),
    name: 'bench',
    key_prefix,
    scopes: ['*'],
    created_at: AT,
    created_by: null,
    ...NO_KEY_LIMITS,
  };
}

function agentOf(index: number): AgentRecord {
  const org = index < AGENTS_OF_FIRST ? 0 : 1 + (index % (ORGS - 1));
  return {
    org_id: orgIdOf(org),
    agent_id: `agent_bench_${padded(index)}`,
    name: `Support agent ${index}`,
    framework: index % 2 === 0 ? 'chain' : 'custom',
    version: '1.4.2',
    repo_url: 'https://git.example.com/agents/support',
    tags: ['prod', 'support'],
    metadata: { department: 'support', realm: 'eu' },
    registered_at: new Date(Date.parse(AT) + index * 1000).toISOString(),
    updated_at: AT,
    archived_at: null,
    deprecated_at: null,
    register_token_hash: hashKey(`rt_bench${padded(index)}`),
  };
}

/** Writes all records, and resolves when every one is stored. */
export async function fillControl(log: Log, progress: (line: string) => void): Promise<void> {
  const [orgs, keys, agents] = await Promise.all([log.bucket('orgs'), log.bucket('api_keys'), log.bucket('agents')]);
  const put = async (what: string, count: number, one: (index: number) => Promise<unknown>) => {
    for (let from = 0; from < count; from += IN_FLIGHT_MAX) {
      const length = Math.min(IN_FLIGHT_MAX, count - from);
      await Promise.all(Array.from({ length }, (_, offset) => one(from + offset)));
    }
    progress(`  ${what}: ${count} written`);
  };
  await put('orgs', ORGS, (index) => orgs.put(orgKey(orgIdOf(index)), JSON.stringify(orgOf(index))));
  await put('agents', AGENTS, (index) => {
    const agent = agentOf(index);
    return agents.put(agentKey(agent.org_id, agent.agent_id), JSON.stringify(agent));
  });
  // Written last, so that a process that knows the last key knows all records.
  await put('keys', ORGS, (index) => keys.put(hashKey(rawKeyOf(index)), JSON.stringify(keyOf(index))));
}
