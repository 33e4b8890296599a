// Agents in JetStream KV, watched into memory with an index by organization: reads never leave the
// process, and a change by any process arrives within milliseconds. Writes compare-and-swap on the
// revision.
import type { KV } from '@nats-io/kv';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import { agentKey, type AgentRecord } from '../../../schemas/records/agent.ts';
import { isAgentId } from './schema.ts';

/** Maximum wait until the watch shows an agent that the bucket has, milliseconds. */
const SHOWN_MS_MAX = 2000;

/** An agent in the index. */
export interface ListedAgent {
  key: string;
  agent: AgentRecord;
  /** Lower-case name, for searches that ignore case. */
  name_lower: string;
  /** Size of the agent's record as JSON. */
  bytes: number;
}

interface OrgIndex {
  agents: Map<string, ListedAgent>;
  /** Total size of the organization's agent records as JSON. */
  bytes: number;
  /** The agents sorted by registration, newest first; null if they have to be sorted again. */
  sorted: ListedAgent[] | null;
}

export class AgentStore {
  readonly #bucket: WatchedBucket<AgentRecord>;
  readonly #kv: KV;
  readonly #orgs = new Map<string, OrgIndex>();
  /** Organization of every key, since a deleted key no longer has a record. */
  readonly #orgOf = new Map<string, string>();

  private constructor(bucket: WatchedBucket<AgentRecord>, kv: KV) {
    this.#bucket = bucket;
    this.#kv = kv;
    for (const [key, { value }] of bucket.entries()) this.#index(key, value);
    bucket.onChange((key, held) => {
      if (held === null) this.#forget(key);
      else this.#index(key, held.value);
    });
  }

  static async open(log: Log, onProblem: ReportProblem): Promise<AgentStore> {
    return new AgentStore(await watch(log, 'agents', onProblem), await log.bucket('agents'));
  }

  get(org_id: string, agent_id: string): AgentRecord | null {
    return this.#bucket.get(agentKey(org_id, agent_id)) ?? null;
  }

  /** Returns whether the organization has an agent with this id, archived or not. */
  exists(org_id: string, agent_id: string): boolean {
    return this.get(org_id, agent_id) !== null;
  }

  /**
   * Returns an agent, including one that another process registered just now: an agent that memory
   * does not have is read from the bucket. The watch has delivered the agent when this resolves.
   */
  async read(org_id: string, agent_id: string): Promise<AgentRecord | null> {
    const known = this.get(org_id, agent_id);
    if (known !== null) return known;
    // A path may hold a text that is no id, and far too long for a key.
    if (!isAgentId(agent_id)) return null;
    const key = agentKey(org_id, agent_id);
    const entry = await this.#kv.get(key);
    if (entry?.operation !== 'PUT') return null;
    await this.#shown(key);
    return this.#bucket.get(key) ?? null;
  }

  /**
   * Resolves when the watch has delivered a key of the bucket. @throws Error when it does not
   * within SHOWN_MS_MAX
   */
  async #shown(key: string): Promise<void> {
    const shown = Promise.withResolvers<undefined>();
    const timer = setTimeout(() => {
      shown.reject(new Error('the watch on agents does not deliver an agent of the bucket'));
    }, SHOWN_MS_MAX);
    const stop = this.#bucket.onChange((changed) => {
      if (changed === key) shown.resolve(undefined);
    });
    if (this.#bucket.get(key) !== undefined) shown.resolve(undefined);
    try {
      await shown.promise;
    } finally {
      stop();
      clearTimeout(timer);
    }
  }

  /**
   * Returns the agents of an organization, newest registration first. Callers must not change the
   * list.
   */
  list(org_id: string): readonly ListedAgent[] {
    const org = this.#orgs.get(org_id);
    if (org === undefined) return [];
    org.sorted ??= [...org.agents.values()].sort(newestFirst);
    return org.sorted;
  }

  /**
   * Returns the number of agents of an organization, archived ones included, and the bytes of their
   * records.
   */
  sizes(org_id: string): { count: number; bytes: number } {
    const org = this.#orgs.get(org_id);
    return { count: org?.agents.size ?? 0, bytes: org?.bytes ?? 0 };
  }

  /**
   * Deletes the agent that was archived longest ago. @returns false if the organization has no
   * archived agent
   */
  async forgetArchived(org_id: string): Promise<boolean> {
    let oldest: { key: string; at: string } | null = null;
    for (const { key, agent } of this.#orgs.get(org_id)?.agents.values() ?? [])
      if (agent.archived_at !== null && (oldest === null || agent.archived_at < oldest.at))
        oldest = { key, at: agent.archived_at };
    const held = oldest === null ? undefined : this.#bucket.held(oldest.key);
    if (oldest === null || held === undefined) return false;
    try {
      await this.#bucket.delete(oldest.key, held.revision);
    } catch (error) {
      // Another process deleted the agent, or it was registered again; the caller checks the sizes
      // again.
      if (!(error instanceof RevisionConflict)) throw error;
    }
    return true;
  }

  /** Yields the organization, id and key of every agent. */
  *all(): IterableIterator<{ org_id: string; agent_id: string; key: string }> {
    for (const [key, { value }] of this.#bucket.entries())
      yield { key, org_id: value.org_id, agent_id: value.agent_id };
  }

  /** Returns whether there is an agent with this key. */
  has(key: string): boolean {
    return this.#orgOf.has(key);
  }

  /** Changes an agent; see WatchedBucket.change. */
  change(
    org_id: string,
    agent_id: string,
    apply: (agent: AgentRecord | undefined) => AgentRecord | null,
  ): Promise<AgentRecord | undefined> {
    return this.#bucket.change(agentKey(org_id, agent_id), apply);
  }

  /** Calls the listener with the key of every agent whose record is deleted. */
  onRemoved(listener: (key: string) => void): () => void {
    return this.#bucket.onChange((key, held) => {
      if (held === null) listener(key);
    });
  }

  /** Calls the listener with every agent that is new or changed. */
  onChange(listener: (key: string, agent: AgentRecord) => void): () => void {
    return this.#bucket.onChange((key, held) => {
      if (held !== null) listener(key, held.value);
    });
  }

  close(): void {
    this.#bucket.close();
  }

  #index(key: string, agent: AgentRecord): void {
    let org = this.#orgs.get(agent.org_id);
    if (org === undefined) this.#orgs.set(agent.org_id, (org = { agents: new Map(), bytes: 0, sorted: null }));
    const bytes = agentBytes(agent);
    org.bytes += bytes - (org.agents.get(key)?.bytes ?? 0);
    org.agents.set(key, { key, agent, name_lower: agent.name.toLowerCase(), bytes });
    org.sorted = null;
    this.#orgOf.set(key, agent.org_id);
  }

  #forget(key: string): void {
    const org = this.#orgs.get(this.#orgOf.get(key) ?? '');
    this.#orgOf.delete(key);
    if (org === undefined) return;
    org.bytes -= org.agents.get(key)?.bytes ?? 0;
    org.agents.delete(key);
    org.sorted = null;
  }
}

function newestFirst({ agent: a }: ListedAgent, { agent: b }: ListedAgent): number {
  if (a.registered_at !== b.registered_at) return a.registered_at > b.registered_at ? -1 : 1;
  return a.agent_id < b.agent_id ? -1 : 1;
}

/** Returns the size of an agent's record in the KV bucket, in bytes. */
export const agentBytes = (agent: AgentRecord): number => Buffer.byteLength(JSON.stringify(agent));
