// When each registered agent was heard of last, held in memory and brought up to date from the store every few seconds.
// In: the registry, which says whose activity matters, and the store's table of activity. Out: a time for each agent.
// Guarantees: what a read finds takes POLL_MS to get here; every read is bounded in rows and time; while the store is away
// the last known times stay.
import type { ClickHouse } from '../../../sql/client/client.ts';
import {
  type AgentRef,
  lastSeenOf,
  lookupBatches,
  newestLanding,
  seenSince,
} from '../../../sql/stores/agent_activity.ts';
import { agentKey } from '../../../schemas/records/agent.ts';
import type { AgentStore } from './store.ts';

const POLL_MS = 10_000;
/** A row becomes visible after the time that it carries; a poll looks back this far behind what it has seen. */
const OVERLAP_MS = 30_000;
/** Rows of one read, and reads of one poll; what is left comes with the next poll. */
const ROWS_MAX = 20_000;
const PAGES_MAX = 10;

export interface ActivityOptions {
  clickhouse: ClickHouse;
  agents: Pick<AgentStore, 'all' | 'has' | 'onChange' | 'onRemoved'>;
  /** Told when the store cannot be read, once until it can again. */
  onProblem: (problem: string, cause: unknown) => void;
  /** Unset: POLL_MS. */
  pollMs?: number;
}

export class AgentActivity {
  readonly #options: ActivityOptions;
  /** Milliseconds since the epoch by agent key; 0 for one that was looked up and never heard of. */
  readonly #seen = new Map<string, number>();
  /** Agents that were not looked up yet: all at first, later those that are new here. */
  readonly #unknown = new Map<string, AgentRef>();
  /** The store's time up to which it was read; null before the first read. */
  #since: number | null = null;
  /** The last read ended at its bound: the next goes on there, instead of looking back. */
  #behind = false;
  #failing = false;
  #timer: NodeJS.Timeout | null = null;
  readonly #stopped = new AbortController();
  readonly #unlisten: () => void;

  constructor(options: ActivityOptions) {
    this.#options = options;
    for (const { key, org_id, agent_id } of options.agents.all()) this.#unknown.set(key, { org_id, agent_id });
    const unlisten = options.agents.onChange((key, { org_id, agent_id }) => {
      if (!this.#seen.has(key)) this.#unknown.set(key, { org_id, agent_id });
    });
    // Its org was deleted, and may be made again with an agent of the same id.
    const unlistenRemoved = options.agents.onRemoved((key) => {
      this.#seen.delete(key);
      this.#unknown.delete(key);
    });
    this.#unlisten = () => {
      unlisten();
      unlistenRemoved();
    };
  }

  /** When an event of the agent was received last, milliseconds since the epoch; 0 for never, as far as is known. */
  lastSeen(org_id: string, agent_id: string): number {
    return this.#seen.get(agentKey(org_id, agent_id)) ?? 0;
  }

  /** Begins to read; returns at once. */
  start(): void {
    const next = (): void => {
      if (!this.#stopped.signal.aborted) this.#timer = setTimeout(loop, this.#options.pollMs ?? POLL_MS).unref();
    };
    const loop = (): void => {
      void this.poll().finally(next);
    };
    loop();
  }

  /** Reads once what has moved. A failure is told and leaves what is known. */
  async poll(): Promise<void> {
    try {
      await this.#read();
      this.#failing = false;
    } catch (cause) {
      if (!this.#failing && !this.#stopped.signal.aborted)
        this.#options.onProblem('when agents were seen last cannot be read', cause);
      this.#failing = true;
    }
  }

  /** Ends the reading; what is known stays readable. */
  close(): void {
    this.#stopped.abort();
    this.#unlisten();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #read(): Promise<void> {
    const { clickhouse } = this.#options;
    const signal = this.#stopped.signal;
    // Before the lookups, so that what lands while they run is read after them.
    this.#since ??= await newestLanding(clickhouse, { signal });
    await this.#lookUp(signal);
    let since = this.#behind ? this.#since : Math.max(0, this.#since - OVERLAP_MS);
    this.#behind = true;
    for (let page = 0; page < PAGES_MAX && this.#behind; page++) {
      const rows = await seenSince(clickhouse, { since, rows: ROWS_MAX }, { signal });
      for (const { org_id, agent_id, last_seen_ms } of rows) this.#take(agentKey(org_id, agent_id), last_seen_ms);
      since = Math.max(since, rows.at(-1)?.landed_ms ?? 0);
      this.#since = Math.max(this.#since, since);
      this.#behind = rows.length >= ROWS_MAX;
    }
  }

  /** Asks for the agents that were not looked up yet, neighbours in the store together. */
  async #lookUp(signal: AbortSignal): Promise<void> {
    const waiting = [...this.#unknown.values()].sort(
      (a, b) => compare(a.org_id, b.org_id) || compare(a.agent_id, b.agent_id),
    );
    for (const batch of lookupBatches(waiting)) {
      const found = await lastSeenOf(this.#options.clickhouse, batch, { signal });
      for (const { org_id, agent_id } of batch) {
        const key = agentKey(org_id, agent_id);
        this.#unknown.delete(key);
        this.#take(key, 0);
      }
      for (const { org_id, agent_id, last_seen_ms } of found) this.#take(agentKey(org_id, agent_id), last_seen_ms);
    }
  }

  #take(key: string, lastSeen: number): void {
    if (this.#options.agents.has(key)) this.#seen.set(key, Math.max(lastSeen, this.#seen.get(key) ?? 0));
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
