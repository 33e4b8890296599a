// Holds in memory when each registered agent was last seen, and polls the store for news every
// POLL_MS. It takes the registry, which defines the agents, and the activity table; it provides a
// time for each agent. Every read is bounded in rows and time. While the store is unavailable, the
// last known times stay.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
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
/**
 * A row becomes visible after the time that it carries, so a poll reads again this far behind the
 * newest row that it has read, milliseconds.
 */
const OVERLAP_MS = 30_000;
/** Maximum rows of one read, and reads of one poll. The next poll continues with the rest. */
const ROWS_MAX = 20_000;
const PAGES_MAX = 10;

export interface ActivityOptions {
  clickhouse: ClickHouse;
  agents: Pick<AgentStore, 'all' | 'has' | 'onChange' | 'onRemoved'>;
  /** Called when the store cannot be read, once until a read succeeds again. */
  onProblem: ReportProblem;
  /** Milliseconds between two polls. POLL_MS by default. */
  pollMs?: number;
}

export class AgentActivity {
  readonly #options: ActivityOptions;
  /**
   * Last-seen time by agent key, milliseconds since the epoch; 0 for an agent that was looked up
   * and has no activity.
   */
  readonly #seen = new Map<string, number>();
  /** Agents that were not looked up yet: at first all, later those that were registered since. */
  readonly #unknown = new Map<string, AgentRef>();
  /** Time of the store up to which activity was read, milliseconds; null before the first read. */
  #since: number | null = null;
  /**
   * True if the last read stopped at its bound: the next one continues there instead of reading the
   * overlap again.
   */
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
    // A deleted organization can be created again with an agent of the same id.
    const unlistenRemoved = options.agents.onRemoved((key) => {
      this.#seen.delete(key);
      this.#unknown.delete(key);
    });
    this.#unlisten = () => {
      unlisten();
      unlistenRemoved();
    };
  }

  /**
   * Returns when the last event of an agent was received, milliseconds since the epoch; 0 if no
   * event is known.
   */
  lastSeen(org_id: string, agent_id: string): number {
    return this.#seen.get(agentKey(org_id, agent_id)) ?? 0;
  }

  /** Starts polling; returns at once. */
  start(): void {
    const next = (): void => {
      if (!this.#stopped.signal.aborted) this.#timer = setTimeout(loop, this.#options.pollMs ?? POLL_MS).unref();
    };
    const loop = (): void => {
      void this.poll().finally(next);
    };
    loop();
  }

  /** Reads the new activity once. A failure is reported and leaves the known times. */
  async poll(): Promise<void> {
    try {
      await this.#read();
      this.#failing = false;
    } catch (cause) {
      if (!this.#failing && !this.#stopped.signal.aborted)
        this.#options.onProblem('the last-seen times of agents cannot be read', cause);
      this.#failing = true;
    }
  }

  /** Stops polling. The known times stay readable. */
  close(): void {
    this.#stopped.abort();
    this.#unlisten();
    if (this.#timer !== null) clearTimeout(this.#timer);
  }

  async #read(): Promise<void> {
    const { clickhouse } = this.#options;
    const signal = this.#stopped.signal;
    // Read before the lookups, so that activity that lands during the lookups is read after them.
    this.#since ??= await newestLanding(clickhouse, { signal });
    await this.#lookUp(signal);
    let since = this.#behind ? this.#since : Math.max(0, this.#since - OVERLAP_MS);
    this.#behind = true;
    for (let page = 0; page < PAGES_MAX && this.#behind; page++) {
      const rows = await seenSince(clickhouse, { since, rows: ROWS_MAX }, { signal });
      for (const { org_id, agent_id, last_seen_ms } of rows) this.#record(agentKey(org_id, agent_id), last_seen_ms);
      since = Math.max(since, rows.at(-1)?.landed_ms ?? 0);
      this.#since = Math.max(this.#since, since);
      this.#behind = rows.length >= ROWS_MAX;
    }
  }

  /**
   * Reads the agents that were not looked up yet, sorted so that neighbours in the store share a
   * batch.
   */
  async #lookUp(signal: AbortSignal): Promise<void> {
    const waiting = [...this.#unknown.values()].sort(
      (a, b) => compare(a.org_id, b.org_id) || compare(a.agent_id, b.agent_id),
    );
    for (const batch of lookupBatches(waiting)) {
      const found = await lastSeenOf(this.#options.clickhouse, batch, { signal });
      for (const { org_id, agent_id } of batch) {
        const key = agentKey(org_id, agent_id);
        this.#unknown.delete(key);
        this.#record(key, 0);
      }
      for (const { org_id, agent_id, last_seen_ms } of found) this.#record(agentKey(org_id, agent_id), last_seen_ms);
    }
  }

  #record(key: string, lastSeen: number): void {
    if (this.#options.agents.has(key)) this.#seen.set(key, Math.max(lastSeen, this.#seen.get(key) ?? 0));
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
