// Registers, lists, gets and archives agents. A registration is an upsert on (organization, agent
// id); the first one spends a register token.
import {
  archived,
  driftsAt,
  newAgent,
  registeredAgain,
  statusOf,
  type GivenAgent,
} from '../../../pipeline/domain/agents/agent_life.ts';
import { RevisionConflict } from '../../../ops/platform/nats/watched_bucket.ts';
import { type AgentRecord, type Framework, FRAMEWORKS } from '../../../schemas/records/agent.ts';
import { ApiError } from '../../http/errors.ts';
import type { AgentRow, ListQuery, RegisterBody } from './schema.ts';
import { agentBytes, type AgentStore } from './store.ts';
import { agentIdOf, hashToken, type MadeToken, refused, type RegisterTokens } from './tokens.ts';

/**
 * Maximum agents of one organization, archived ones included, and bytes of their records: every API
 * process holds them in memory. Several processes that register at once may exceed it slightly.
 */
export const AGENTS_ORG_MAX = 50_000;
export const AGENTS_BYTES_ORG_MAX = 64 * 1024 * 1024;
/** Bytes reserved for a new agent before its record is written; records are rarely larger. */
const NEW_AGENT_BYTES = 1024;
/** Maximum archived agents that are deleted to make room for one. */
const FORGOTTEN_MAX = 100;

export interface AgentsDeps {
  agents: AgentStore;
  tokens: RegisterTokens;
  /**
   * Returns when the last event of an agent was received, milliseconds since the epoch; 0 for
   * never.
   */
  lastSeen: (org_id: string, agent_id: string) => number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Result of a registration. */
export interface Registration {
  agent: AgentRecord;
  is_new: boolean;
  /** Fields that changed; empty if the registration changed nothing. */
  changes: Record<string, unknown>;
}

/** @throws ApiError rate_limited, upstream_unavailable */
export async function makeToken(deps: AgentsDeps, org_id: string): Promise<MadeToken> {
  return reaching(deps.tokens.make(org_id));
}

/**
 * Registers an agent, or updates its registration: given fields replace the stored ones, fields
 * that are left out stay, and an archived or deprecated agent becomes registered again.
 *
 * @throws ApiError invalid_framework, invalid_register_token, agent_already_registered, conflict,
 * upstream_unavailable
 */
export async function registerAgent(deps: AgentsDeps, org_id: string, body: RegisterBody): Promise<Registration> {
  const { agent_id: named, register_token, framework, ...fields } = body;
  const given: GivenAgent = { ...fields, framework: framework === undefined ? undefined : frameworkOf(framework) };
  const tokenHash = register_token === undefined ? null : hashToken(register_token);
  if (named === undefined && tokenHash === null) throw refused('is missing');
  const agent_id = named ?? agentIdOf(tokenHash ?? '');
  return reaching(upsert(deps, { org_id, agent_id, tokenHash, isNamed: named !== undefined }, given));
}

interface Registrant {
  org_id: string;
  agent_id: string;
  tokenHash: string | null;
  /** True if the request names the agent; otherwise its id is derived from the token. */
  isNamed: boolean;
}

async function upsert(
  deps: AgentsDeps,
  { org_id, agent_id, tokenHash, isNamed }: Registrant,
  given: GivenAgent,
): Promise<Registration> {
  if ((await deps.agents.read(org_id, agent_id)) === null) {
    if (tokenHash === null) throw refused('is missing');
    await makeRoom(deps, org_id);
    await deps.tokens.claim(org_id, tokenHash, agent_id);
  }
  const now = deps.now();
  const seen: { before: AgentRecord | undefined } = { before: undefined };
  const agent = await deps.agents.change(org_id, agent_id, (before) => {
    seen.before = before;
    if (before === undefined) return newAgent({ org_id, agent_id, register_token_hash: tokenHash ?? '' }, given, now);
    if (tokenHash !== null && tokenHash !== before.register_token_hash)
      throw new ApiError(
        'agent_already_registered',
        `The agent ${agent_id} is registered with another register_token.`,
      );
    const next = registeredAgain(before, given, now);
    if (next !== null) checkBytes(deps, org_id, agentBytes(next) - agentBytes(before));
    // A request authorized by its token alone can only repeat a registration: a used token with
    // other fields is rejected.
    if (next !== null && !isNamed) throw refused('was already used');
    return next;
  });
  if (agent === undefined) throw new Error('a registration had no result');
  const { before } = seen;
  return {
    agent,
    is_new: before === undefined,
    changes: before === undefined ? shown(agent) : difference(before, agent),
  };
}

/**
 * Makes room for one more agent by deleting archived ones, those archived longest ago first.
 * @throws ApiError conflict when no archived agent is left
 */
async function makeRoom({ agents }: AgentsDeps, org_id: string): Promise<void> {
  for (let tries = 0; tries < FORGOTTEN_MAX; tries++) {
    const { count, bytes } = agents.sizes(org_id);
    if (count < AGENTS_ORG_MAX && bytes + NEW_AGENT_BYTES <= AGENTS_BYTES_ORG_MAX) return;
    if (!(await agents.forgetArchived(org_id))) break;
  }
  throw full();
}

/**
 * @throws ApiError conflict when the records of the organization's agents would exceed the maximum
 * bytes
 */
function checkBytes({ agents }: AgentsDeps, org_id: string, more: number): void {
  if (more > 0 && agents.sizes(org_id).bytes + more > AGENTS_BYTES_ORG_MAX) throw full();
}

function full(): ApiError {
  const detail = `An organization has at most ${AGENTS_ORG_MAX} agents with ${AGENTS_BYTES_ORG_MAX} bytes of records`;
  return new ApiError(
    'conflict',
    `${detail}. Archive agents that are no longer used: new agents replace archived ones.`,
  );
}

/**
 * Archives an agent; its traces stay.
 *
 * @returns false if it was already archived
 * @throws ApiError agent_not_found, upstream_unavailable
 */
export async function archiveAgent(deps: AgentsDeps, org_id: string, agent_id: string): Promise<boolean> {
  let changed = false;
  if ((await reaching(deps.agents.read(org_id, agent_id))) === null) throw notFound();
  await reaching(
    deps.agents.change(org_id, agent_id, (agent) => {
      if (agent === undefined) throw notFound();
      const next = archived(agent, deps.now());
      changed = next !== null;
      return next;
    }),
  );
  return changed;
}

/** @throws ApiError agent_not_found */
export function getAgent(deps: AgentsDeps, org_id: string, agent_id: string): AgentRow {
  const agent = deps.agents.get(org_id, agent_id);
  if (agent === null) throw notFound();
  return rowOf(deps, agent);
}

/**
 * Returns one page of an organization's agents, newest registration first. @throws ApiError
 * invalid_framework
 */
export function listAgents(deps: AgentsDeps, org_id: string, query: ListQuery): { rows: AgentRow[]; total: number } {
  const { limit, offset } = query;
  const framework = query.framework === undefined ? undefined : frameworkOf(query.framework);
  const name = query.name?.toLowerCase() ?? '';
  const found = deps.agents
    .list(org_id)
    .filter(
      ({ agent, name_lower }) =>
        (query.archived || agent.archived_at === null) &&
        (framework === undefined || agent.framework === framework) &&
        (name === '' || name_lower.includes(name)),
    );
  return { rows: found.slice(offset, offset + limit).map(({ agent }) => rowOf(deps, agent)), total: found.length };
}

function rowOf(deps: AgentsDeps, agent: AgentRecord): AgentRow {
  const { agent_id, name, framework, version, repo_url, registered_at, tags, metadata, archived_at } = agent;
  const lastSeen = deps.lastSeen(agent.org_id, agent_id);
  const status = statusOf(agent, lastSeen);
  return {
    agent_id,
    name,
    framework,
    version,
    repo_url,
    registered_at,
    last_seen_at: lastSeen === 0 ? null : new Date(lastSeen).toISOString(),
    tags,
    metadata,
    status,
    archived_at,
    // A deprecated agent with later activity counts as registered, though its record may say so
    // only after the next drift job.
    deprecated_at: status === 'registered' ? null : agent.deprecated_at,
    deprecates_at: status === 'registered' ? new Date(driftsAt(agent, lastSeen)).toISOString() : null,
  };
}

function frameworkOf(given: string): Framework;
function frameworkOf(given: string | null): Framework | null;
function frameworkOf(given: string | null): Framework | null {
  const known = given === null ? null : FRAMEWORKS.find((one) => one === given);
  if (known === undefined)
    throw new ApiError('invalid_framework', `framework: must be one of ${FRAMEWORKS.join(', ')}`);
  return known;
}

/** Returns the fields of a registration that the audit log shows. */
function shown({ name, framework, version, repo_url, tags, metadata }: AgentRecord): Record<string, unknown> {
  return { name, framework, version, repo_url, tags, metadata };
}

function difference(before: AgentRecord, after: AgentRecord): Record<string, unknown> {
  const old = { ...shown(before), archived_at: before.archived_at, deprecated_at: before.deprecated_at };
  const fresh = { ...shown(after), archived_at: after.archived_at, deprecated_at: after.deprecated_at };
  return Object.fromEntries(
    Object.entries(fresh).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(old[field as keyof typeof old]),
    ),
  );
}

function notFound(): ApiError {
  return new ApiError('agent_not_found', 'The organization has no agent with this id.');
}

/** Maps the errors of the registry's store to API errors. */
async function reaching<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const detail =
      cause instanceof RevisionConflict
        ? 'The agent is being changed by other requests. Try again.'
        : 'The agent registry cannot be reached. Try again.';
    throw new ApiError(cause instanceof RevisionConflict ? 'conflict' : 'upstream_unavailable', detail, { cause });
  }
}
