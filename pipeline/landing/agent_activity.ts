// The times at which agents were last active: gathered from what lands, and written before each
// checkpoint. A row for each landing would be one more part to write and to merge, for times that
// nobody reads within seconds.
//
// Everything below a checkpoint is written. What a worker gathered before it died lies above its
// checkpoint, and the next owner reads it back from the usage rows (history_store.ts). Writing a
// time twice changes nothing, because readers take the latest.
import type { CountedUsage } from './usage_rows.ts';

/** An agent, and received_at of its newest event, in milliseconds since the epoch. */
export interface AgentHeard {
  org_id: string;
  agent_id: string;
  last_seen_at: number;
}

export class AgentActivity {
  readonly #write: (heard: readonly AgentHeard[]) => Promise<void>;
  /**
   * At most one agent for each event that landed since the last checkpoint. Nothing lands while the
   * store is unavailable.
   */
  #heard = new Map<string, AgentHeard>();

  /** @param write resolves once the rows are in the store */
  constructor(write: (heard: readonly AgentHeard[]) => Promise<void>) {
    this.#write = write;
  }

  /** Adds the agents that a landing counts. */
  note(usage: readonly Pick<CountedUsage, 'usage'>[]): void {
    for (const { usage: used } of usage) {
      const { org_id, agent_id, last_received_at } = used;
      if (agent_id !== '') this.#take({ org_id, agent_id, last_seen_at: last_received_at });
    }
  }

  /**
   * Resolves once everything noted before the call is written.
   *
   * @throws what `write` throws; the times are kept and written with the next call
   */
  async write(): Promise<void> {
    if (this.#heard.size === 0) return;
    const heard = this.#heard;
    this.#heard = new Map();
    try {
      await this.#write([...heard.values()]);
    } catch (error) {
      for (const one of heard.values()) this.#take(one);
      throw error;
    }
  }

  #take(one: AgentHeard): void {
    const key = `${one.org_id} ${one.agent_id}`;
    const known = this.#heard.get(key);
    if (known === undefined || known.last_seen_at < one.last_seen_at) this.#heard.set(key, one);
  }
}
