// What can be done to agents: the rules between a route and the stores. A registration is an upsert on (org, agent id); the
// first one spends a register token.
import {
  archived,
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

/** Agents of an org, archived ones too, and bytes of their records: every API process holds them. A few more where several register at once. */
export const AGENTS_ORG_MAX = 50_000;
export const AGENTS_BYTES_ORG_MAX = 64 * 1024 * 1024;
/** Bytes counted for a new agent before its record is written; records are rarely larger. */
const NEW_AGENT_BYTES = 1024;
/** Archived agents that are forgotten at most to make room for one. */
const FORGOTTEN_MAX = 100;

export interface AgentsDeps {
  agents: AgentStore;
  tokens: RegisterTokens;
  /** When an event of the agent was received last, milliseconds since the epoch; 0 for never. */
  lastSeen: (org_id: string, agent_id: string) => number;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** What a registration did. */
export interface Registration {
  agent: AgentRecord;
  is_new: boolean;
  /** Fields that were written; empty when all was as it was. */
  changes: Record<string, unknown>;
}

/** @throws ApiError upstream_unavailable */
export async function makeToken(deps: AgentsDeps, org_id: string): Promise<MadeToken> {
  return reaching(deps.tokens.make(org_id));
}

/**
 * Registers an agent, or brings its registration up to date: given fields replace, fields left out stay, an archived or
 * deprecated agent is registered once more.
 * @throws ApiError invalid_framework, invalid_register_token, agent_already_registered, upstream_unavailable
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
  /** Whether the request names the agent; else the id was made of the token. */
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
        `The agent ${agent_id} is registered, with another register_token.`,
      );
    const next = registeredAgain(before, given, now);
    if (next !== null) checkBytes(deps, org_id, agentBytes(next) - agentBytes(before));
    // By its token alone an agent can only be repeated: a used token that comes with something else is a used token.
    if (next !== null && !isNamed) throw refused('was used already');
    return next;
  });
  if (agent === undefined) throw new Error('a registration came to nothing');
  const { before } = seen;
  return {
    agent,
    is_new: before === undefined,
    changes: before === undefined ? shown(agent) : difference(before, agent),
  };
}

/** Makes room for one more agent: archived ones go, those archived longest ago first. @throws ApiError conflict when all are in use */
async function makeRoom({ agents }: AgentsDeps, org_id: string): Promise<void> {
  for (let tries = 0; tries < FORGOTTEN_MAX; tries++) {
    const { count, bytes } = agents.sizes(org_id);
    if (count < AGENTS_ORG_MAX && bytes + NEW_AGENT_BYTES <= AGENTS_BYTES_ORG_MAX) return;
    if (!(await agents.forgetArchived(org_id))) break;
  }
  throw full();
}

/** @throws ApiError conflict when the records of the org's agents would have more bytes than they may */
function checkBytes({ agents }: AgentsDeps, org_id: string, more: number): void {
  if (more > 0 && agents.sizes(org_id).bytes + more > AGENTS_BYTES_ORG_MAX) throw full();
}

function full(): ApiError {
  const detail = `An organization has at most ${String(AGENTS_ORG_MAX)} agents with ${String(AGENTS_BYTES_ORG_MAX)} bytes of records`;
  return new ApiError(
    'conflict',
    `${detail}. Archive agents that are no longer used: new ones take the places of archived ones.`,
  );
}

/**
 * Archives an agent; its traces stay.
 * @returns false when it was archived already
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

/** One page of an org's agents, newest registration first. @throws ApiError invalid_framework */
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
    // A deprecated agent that was seen since is registered again, though its record may say so only after the next drift job.
    deprecated_at: status === 'registered' ? null : agent.deprecated_at,
  };
}

function frameworkOf(given: string): Framework;
function frameworkOf(given: string | null): Framework | null;
function frameworkOf(given: string | null): Framework | null {
  const known = given === null ? null : FRAMEWORKS.find((one) => one === given);
  if (known === undefined) throw new ApiError('invalid_framework', `framework: takes one of ${FRAMEWORKS.join(', ')}`);
  return known;
}

/** What the audit log shows of a registration. */
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
  return new ApiError('agent_not_found', 'The org has no agent of this id.');
}

/** Whatever the registry's store throws is its being away. */
async function reaching<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    const detail =
      cause instanceof RevisionConflict
        ? 'Too many writers change this agent at once. Try again.'
        : 'The agent registry cannot be reached. Try again.';
    throw new ApiError(cause instanceof RevisionConflict ? 'conflict' : 'upstream_unavailable', detail, { cause });
  }
}
