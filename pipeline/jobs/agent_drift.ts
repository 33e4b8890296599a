// Job `agent-drift`: deprecates agents without an event for INACTIVE_DAYS, and revives deprecated
// agents that have sent an event since. Reads the registry and the store's table of activity;
// changes records with CAS and writes a record to the audit log for each. Guarantees: the decision
// is repeated on the newest record of an agent, so no registration made meanwhile is undone;
// repeating a run changes nothing.
import { type AgentRef, type AgentSeen, lookupBatches } from '../../sql/stores/agent_activity.ts';
import type { SystemMutation } from '../../ops/exchange/audit_log.ts';
import { inParallel } from '../../ops/platform/in_parallel.ts';
import { agentKey, type AgentRecord } from '../../schemas/records/agent.ts';
import { deprecated, driftOf, INACTIVE_DAYS, revived } from '../domain/agents/agent_life.ts';
import type { JobContext, JobResult } from './job.ts';

export const AGENT_DRIFT = 'agent-drift';
/** Agents changed concurrently. */
const WRITES_MAX = 16;

/** Registry of agents, open for the length of a run. */
export interface AgentRegistry {
  values: () => Iterable<AgentRecord>;
  /**
   * Applies a change to the newest record with CAS; null leaves the record unchanged.
   * @returns the current record
   */
  change: (
    key: string,
    apply: (agent: AgentRecord | undefined) => AgentRecord | null,
  ) => Promise<AgentRecord | undefined>;
  close: () => void;
}

export interface AgentDriftDeps {
  openAgents: () => Promise<AgentRegistry>;
  /**
   * Returns the time of the newest event of each agent of one batch (lookupBatches).
   * @throws StoreUnavailable
   */
  lastSeenOf: (agents: readonly AgentRef[], signal: AbortSignal) => Promise<AgentSeen[]>;
  /**
   * Carries out a mutation with a record in the audit log. A mutation that resolves with null
   * changed nothing.
   */
  record: (mutation: SystemMutation, mutate: () => Promise<Readonly<Record<string, unknown>> | null>) => Promise<void>;
}

type Drift = 'deprecate' | 'revive';

/** Creates the run of the job. Its result counts the agents checked, deprecated and revived. */
export function createAgentDrift(deps: AgentDriftDeps): (context: JobContext) => Promise<JobResult> {
  return async ({ now, signal }) => {
    const registry = await deps.openAgents();
    try {
      // The job skips agents that it would leave unchanged even without any event.
      const asked = [...registry.values()].filter(
        (agent) => agent.deprecated_at !== null || driftOf(agent, 0, now) !== null,
      );
      const counts = { checked: asked.length, deprecated: 0, revived: 0 };
      for (const batch of lookupBatches(asked)) {
        const found = await deps.lastSeenOf(batch, signal);
        const seen = new Map(found.map((one) => [agentKey(one.org_id, one.agent_id), one.last_seen_ms]));
        const work = batch.map((agent) => ({ agent, lastSeen: seen.get(agentKey(agent.org_id, agent.agent_id)) ?? 0 }));
        const moved = async ({ agent, lastSeen }: (typeof work)[number]): Promise<void> => {
          const drift = driftOf(agent, lastSeen, now);
          if (drift === null || !(await move(deps, registry, agent, drift, lastSeen, now))) return;
          if (drift === 'deprecate') counts.deprecated += 1;
          else counts.revived += 1;
        };
        await inParallel(work, WRITES_MAX, moved, signal);
      }
      return counts;
    } finally {
      registry.close();
    }
  };
}

/**
 * Deprecates or revives one agent, unless its newest record decides otherwise.
 * @returns true if the agent was changed
 */
async function move(
  deps: AgentDriftDeps,
  registry: AgentRegistry,
  { org_id, agent_id }: AgentRecord,
  drift: Drift,
  lastSeen: number,
  now: number,
): Promise<boolean> {
  let moved = false;
  const mutation = {
    by: AGENT_DRIFT,
    org_id,
    action: `agent.${drift}`,
    target: { type: 'agent', id: agent_id },
  } as const;
  await deps.record(mutation, async () => {
    // The time is never later than the clock, even in a run as of a later instant: an event after
    // it revives the agent.
    const at = Math.min(now, Date.now());
    await registry.change(agentKey(org_id, agent_id), (agent) => {
      moved = agent !== undefined && driftOf(agent, lastSeen, now) === drift;
      if (agent === undefined || !moved) return null;
      return drift === 'deprecate' ? deprecated(agent, at) : revived(agent);
    });
    if (!moved) return null;
    return drift === 'deprecate'
      ? {
          drift_type: 'inactive',
          reason: `no events in ${INACTIVE_DAYS} days`,
          deprecated_at: new Date(at).toISOString(),
        }
      : { deprecated_at: null, reason: 'events were received again' };
  });
  return moved;
}
