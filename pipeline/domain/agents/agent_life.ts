// The life of an agent: registered, brought up to date, archived, deprecated when nothing is heard of it, and back.
// Pure: records in, records out. Times in records are ISO 8601, arguments are milliseconds since the epoch.
import { isDeepStrictEqual } from 'node:util';
import type { AgentRecord, Framework } from '../../../schemas/records/agent.ts';

export const INACTIVE_DAYS = 90;
const DAY_MS = 86_400_000;

export type AgentStatus = 'registered' | 'archived' | 'deprecated';

/** What a registration says of an agent. Undefined leaves a field as it is, null empties it. */
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

/** The record of an agent that registers for the first time. */
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

/** The record after the agent registered again, archived or deprecated no more; null when that changes nothing. */
export function registeredAgain(agent: AgentRecord, given: GivenAgent, now: number): AgentRecord | null {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const next: AgentRecord = { ...agent, ...said, archived_at: null, deprecated_at: null };
  return isDeepStrictEqual(next, agent) ? null : { ...next, updated_at: new Date(now).toISOString() };
}

/** The record after the agent was archived; null when it is archived already. */
export function archived(agent: AgentRecord, now: number): AgentRecord | null {
  if (agent.archived_at !== null) return null;
  const at = new Date(now).toISOString();
  return { ...agent, archived_at: at, updated_at: at };
}

/**
 * What an agent is now.
 * @param lastSeen when an event of it was received last, 0 for never: one after the deprecation takes that back
 */
export function statusOf(agent: AgentRecord, lastSeen: number): AgentStatus {
  if (agent.archived_at !== null) return 'archived';
  return agent.deprecated_at !== null && lastSeen <= Date.parse(agent.deprecated_at) ? 'deprecated' : 'registered';
}

/**
 * What drift detection makes of an agent: `deprecate` when neither a registration nor an event was heard for INACTIVE_DAYS,
 * `revive` when a deprecated one was heard since, null when it stays as it is. Archived ones stay.
 * @param now as of when
 */
export function driftOf(agent: AgentRecord, lastSeen: number, now: number): 'deprecate' | 'revive' | null {
  if (agent.archived_at !== null) return null;
  const heard = Math.max(lastSeen, Date.parse(agent.registered_at), Date.parse(agent.updated_at));
  const inactive = heard < now - INACTIVE_DAYS * DAY_MS;
  if (agent.deprecated_at === null) return inactive ? 'deprecate' : null;
  return !inactive || lastSeen > Date.parse(agent.deprecated_at) ? 'revive' : null;
}

/** The record after drift detection gave the agent up. Registrations stay as they were. */
export function deprecated(agent: AgentRecord, now: number): AgentRecord {
  return { ...agent, deprecated_at: new Date(now).toISOString() };
}

/** The record after a deprecated agent was heard of again. */
export function revived(agent: AgentRecord): AgentRecord {
  return { ...agent, deprecated_at: null };
}
