// Transitions of an agent's record: registered, updated, archived, deprecated after a silence,
// revived. Pure: records in, records out. Times in records are ISO 8601; arguments are milliseconds
// since the epoch.
import { isDeepStrictEqual } from 'node:util';
import type { AgentRecord, Framework } from '../../../schemas/records/agent.ts';

export const INACTIVE_DAYS = 90;
const DAY_MS = 86_400_000;

export type AgentStatus = 'registered' | 'archived' | 'deprecated';

/** The fields of a registration. An undefined field stays as it is; null clears it. */
export interface GivenAgent {
  name: string;
  framework?: Framework | null | undefined;
  version?: string | null | undefined;
  repo_url?: string | null | undefined;
  tags?: string[] | undefined;
  metadata?: Record<string, unknown> | undefined;
}

interface NewAgent {
  org_id: string;
  agent_id: string;
  register_token_hash: string;
}

/** Returns the record of an agent that registers for the first time. */
export function newAgent(identity: NewAgent, given: GivenAgent, now: number): AgentRecord {
  const at = new Date(now).toISOString();
  return {
    org_id: identity.org_id,
    agent_id: identity.agent_id,
    name: given.name,
    framework: given.framework ?? null,
    version: given.version ?? null,
    repo_url: given.repo_url ?? null,
    tags: given.tags ?? [],
    metadata: given.metadata ?? {},
    registered_at: at,
    updated_at: at,
    archived_at: null,
    deprecated_at: null,
    register_token_hash: identity.register_token_hash,
  };
}

/**
 * Returns the record after the agent registered again, which ends an archival or a deprecation;
 * null when nothing changes.
 */
export function registeredAgain(agent: AgentRecord, given: GivenAgent, now: number): AgentRecord | null {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const next: AgentRecord = { ...agent, ...said, archived_at: null, deprecated_at: null };
  return isDeepStrictEqual(next, agent) ? null : { ...next, updated_at: new Date(now).toISOString() };
}

/** Returns the record of the archived agent; null when it is archived already. */
export function archived(agent: AgentRecord, now: number): AgentRecord | null {
  if (agent.archived_at !== null) return null;
  const at = new Date(now).toISOString();
  return { ...agent, archived_at: at, updated_at: at };
}

/**
 * Returns the agent's current status.
 * @param lastSeen when the agent's latest event was received, 0 if none was: an event after the
 * deprecation revives the agent
 */
export function statusOf(agent: AgentRecord, lastSeen: number): AgentStatus {
  if (agent.archived_at !== null) return 'archived';
  return agent.deprecated_at !== null && lastSeen <= Date.parse(agent.deprecated_at) ? 'deprecated' : 'registered';
}

/**
 * Returns the time from which on drift detection deprecates the agent unless it registers or sends an
 * event before, milliseconds since the epoch.
 */
export function driftsAt(agent: AgentRecord, lastSeen: number): number {
  return Math.max(lastSeen, Date.parse(agent.registered_at), Date.parse(agent.updated_at)) + INACTIVE_DAYS * DAY_MS;
}

/**
 * Returns the change that drift detection makes: `deprecate` when the agent neither registered nor
 * sent an event for INACTIVE_DAYS, `revive` when a deprecated agent did so since, null when nothing
 * changes. Archived agents stay archived.
 * @param now the instant of the decision
 */
export function driftOf(agent: AgentRecord, lastSeen: number, now: number): 'deprecate' | 'revive' | null {
  if (agent.archived_at !== null) return null;
  const inactive = driftsAt(agent, lastSeen) < now;
  if (agent.deprecated_at === null) return inactive ? 'deprecate' : null;
  return !inactive || lastSeen > Date.parse(agent.deprecated_at) ? 'revive' : null;
}

/**
 * Returns the record of the agent that drift detection deprecated. Its registrations stay as they
 * are.
 */
export function deprecated(agent: AgentRecord, now: number): AgentRecord {
  return { ...agent, deprecated_at: new Date(now).toISOString() };
}

/** Returns the record of a deprecated agent that registered or sent an event again. */
export function revived(agent: AgentRecord): AgentRecord {
  return { ...agent, deprecated_at: null };
}
