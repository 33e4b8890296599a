// What was let in and has not landed yet, by org, hour and agent, and when it is given back. Pure: part of the usage ledger.
// Bounds: what waits is one sum for an org, hour, agent with limits and message of the log, of SLOTS_MAX messages a partition.
import { addUsed, isNothing, nothingUsed, type Used } from './budget.ts';

/** Messages of one partition whose reservations are kept apart; beyond it the newest ones are given back together. */
const SLOTS_MAX = 4096;

/** An event that asks to be let in. */
export interface AskedUse extends Used {
  agent_id: string;
  partition: number;
  /** Start of the hour of receipt, milliseconds. */
  hour: number;
}

/** What was let in, until it has landed. */
export interface Reservation {
  /** What is counted, by partition, hour and agent with limits. */
  readonly uses: readonly AskedUse[];
  /** The log has it: by partition, the JetStream sequence. */
  confirm: (positions: ReadonlyMap<number, number>) => void;
  /** It did not come in after all. */
  cancel: () => void;
}

/** Hours from `from` until `until`. */
interface Hours {
  from: number;
  until: number;
}

/** What was let in of one org. */
export class Reserves {
  /** While set, nothing is given back: what has landed is not counted yet. A new account is to be read first. */
  held = true;
  /** By hour. */
  readonly #hours = new Map<number, Used>();
  /** By hour and agent with limits of its own. */
  readonly #agents = new Map<string, Used>();

  add(use: AskedUse, sign: 1 | -1): void {
    addIn(this.#hours, use.hour, use, sign);
    if (use.agent_id !== '') addIn(this.#agents, keyOf(use), use, sign);
  }

  total({ from, until }: Hours): Used {
    const total = nothingUsed();
    for (const [hour, sum] of this.#hours) if (hour >= from && hour < until) addUsed(total, sum);
    return total;
  }

  agentTokens(agent_id: string, { from, until }: Hours): number {
    let tokens = 0;
    for (const hour of this.#hours.keys())
      if (hour >= from && hour < until) tokens += this.#agents.get(keyOf({ hour, agent_id }))?.tokens ?? 0;
    return tokens;
  }
}

function addIn<K>(sums: Map<K, Used>, key: K, use: Used, sign: 1 | -1): void {
  const sum = sums.get(key) ?? nothingUsed();
  addUsed(sum, use, sign);
  if (isNothing(sum)) sums.delete(key);
  else sums.set(key, sum);
}

/** By partition, and there by hour and agent; agents that are not counted apart are one. */
type Sums = Map<number, Map<string, AskedUse>>;

function summed(agents: ReadonlySet<string>, asked: readonly AskedUse[]): Sums {
  const byPartition: Sums = new Map();
  for (const use of asked) {
    const sums = byPartition.get(use.partition) ?? new Map<string, AskedUse>();
    byPartition.set(use.partition, sums);
    merge(sums, agents.has(use.agent_id) ? use : { ...use, agent_id: '' });
  }
  return byPartition;
}

const flat = (byPartition: Sums): AskedUse[] => [...byPartition.values()].flatMap((sums) => [...sums.values()]);

/** The same use in as few rows as it is counted by. */
export const mergedUses = (agents: ReadonlySet<string>, asked: readonly AskedUse[]): AskedUse[] => flat(summed(agents, asked));

/** Reservations that end with one message of the log. */
interface Slot {
  seq: number;
  uses: Map<Reserves, Map<string, AskedUse>>;
}

/** Hour and agent; the partition is the slot's. */
const keyOf = ({ hour, agent_id }: Pick<AskedUse, 'hour' | 'agent_id'>): string => `${String(hour)} ${agent_id}`;

export class LettingIn {
  /** By partition: JetStream sequence up to which it has landed. */
  readonly #landed = new Map<number, number>();
  /** By partition, in the order of their sequences. */
  readonly #waiting = new Map<number, Slot[]>();

  /** @param agents those that are counted apart */
  reserve(reserves: Reserves, agents: ReadonlySet<string>, asked: readonly AskedUse[]): Reservation {
    const byPartition = summed(agents, asked);
    const uses = flat(byPartition);
    for (const use of uses) reserves.add(use, 1);
    return {
      uses,
      cancel: () => {
        for (const sums of byPartition.values()) giveBack(reserves, sums);
      },
      confirm: (positions) => {
        for (const [partition, sums] of byPartition) {
          const seq = positions.get(partition) ?? 0;
          if (seq <= (this.#landed.get(partition) ?? 0) && !reserves.held) giveBack(reserves, sums);
          else this.#await(partition, seq, reserves, sums);
        }
      },
    };
  }

  #await(partition: number, seq: number, reserves: Reserves, sums: Map<string, AskedUse>): void {
    const queue = this.#waiting.get(partition) ?? [];
    this.#waiting.set(partition, queue);
    // Confirmations come nearly in the order of the log.
    let at = queue.length;
    while (at > 0 && (queue[at - 1]?.seq ?? 0) > seq) at--;
    let slot = queue[at - 1];
    if (slot?.seq !== seq) {
      slot = { seq, uses: new Map() };
      queue.splice(at, 0, slot);
    }
    addTo(slot, reserves, sums);
    if (queue.length <= SLOTS_MAX) return;
    const newest = queue.pop();
    const last = queue.at(-1);
    if (newest === undefined || last === undefined) return;
    last.seq = newest.seq;
    for (const [whose, more] of newest.uses) addTo(last, whose, more);
  }

  /** A partition has landed up to a sequence. */
  landed(partition: number, through: number): void {
    if (through <= (this.#landed.get(partition) ?? 0)) return;
    this.#landed.set(partition, through);
    this.#release(partition, through);
  }

  /** Gives back what was held and has landed. */
  releaseLanded(): void {
    for (const [partition, through] of this.#landed) this.#release(partition, through);
  }

  #release(partition: number, through: number): void {
    const queue = this.#waiting.get(partition) ?? [];
    const first = queue.findIndex(({ seq }) => seq > through);
    const landed = queue.splice(0, first < 0 ? queue.length : first);
    const held = landed.filter((slot) => {
      for (const [reserves, sums] of slot.uses) {
        if (reserves.held) continue;
        giveBack(reserves, sums);
        slot.uses.delete(reserves);
      }
      return slot.uses.size > 0;
    });
    queue.unshift(...held);
  }
}

function giveBack(reserves: Reserves, sums: ReadonlyMap<string, AskedUse>): void {
  for (const use of sums.values()) reserves.add(use, -1);
}

function addTo({ uses }: Slot, reserves: Reserves, more: ReadonlyMap<string, AskedUse>): void {
  const sums = uses.get(reserves) ?? new Map<string, AskedUse>();
  uses.set(reserves, sums);
  for (const use of more.values()) merge(sums, use);
}

function merge(sums: Map<string, AskedUse>, use: AskedUse): void {
  const key = keyOf(use);
  const known = sums.get(key);
  if (known === undefined) sums.set(key, { ...use });
  else addUsed(known, use);
}
