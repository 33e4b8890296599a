// When agents were heard of last: gathered from what lands, and written before a checkpoint passes it. A row for each landing would be one
// more part to write and to merge, for times that nobody reads sooner than seconds later.
// Guarantees: what a checkpoint covers is written; what a worker gathered and died with lies above its checkpoint, and whoever has its
// partitions next reads it back from the usage rows (landing_store.ts). Written twice changes nothing: readers take the latest.
import type { CountedUsage } from './usage_rows.ts';

/** An agent, and when an event of it was received last, milliseconds since the epoch. */
export interface AgentHeard {
  org_id: string;
  agent_id: string;
  last_seen_at: number;
}

export class AgentActivity {
  readonly #write: (heard: readonly AgentHeard[]) => Promise<void>;
  /** At most an agent for each event that landed since the last checkpoint; while the store is away nothing lands. */
  #heard = new Map<string, AgentHeard>();

  /** @param write resolves when the rows are in the store */
  constructor(write: (heard: readonly AgentHeard[]) => Promise<void>) {
    this.#write = write;
  }

  /** Takes what a landing used. */
  note(usage: readonly Pick<CountedUsage, 'usage'>[]): void {
    for (const { usage: used } of usage) {
      const { org_id, agent_id, last_received_at } = used;
      if (agent_id !== '') this.#take({ org_id, agent_id, last_seen_at: last_received_at });
    }
  }

  /** Resolves when all that was noted before the call is written. @throws whatever `write` throws: it is kept and written with the next */
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
