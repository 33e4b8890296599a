// Reservations: use that was admitted and has not landed yet, by organization, hour and agent. A
// reservation ends when the account's sums include its message of the ingest log, whether a report
// or a read of the store brought them. Pure; part of the usage ledger.
//
// Bounds: one sum for each organization, hour, agent with limits and slot of the log, and SLOTS_MAX
// slots a partition.
import { addUsed, isNothing, nothingUsed, type Used } from './budget.ts';

/**
 * Maximum slots of one partition. A slot is one message of the log; beyond the bound, neighbours
 * merge and are released together.
 */
export const SLOTS_MAX = 4096;

/** The use of an event that asks for admission. */
export interface AskedUse extends Used {
  agent_id: string;
  partition: number;
  /** Start of the hour of receipt, milliseconds. */
  hour: number;
}

/** Use that was admitted, until it has landed. */
export interface Reservation {
  /** The counted use, by partition, hour and agent with limits. */
  readonly uses: readonly AskedUse[];
  /**
   * Reports that the ingest log stored the messages. @param positions position in the log by
   * partition
   */
  confirm: (positions: ReadonlyMap<number, number>) => void;
  /** Releases the reservation: the events were not stored. */
  cancel: () => void;
}

/** The hours from `from` up to, but not including, `until`. */
interface Hours {
  from: number;
  until: number;
}

/** The reserved use of one organization. */
export class Reserves {
  /**
   * While true, landing reports release nothing, since the account ignores reports. A new account
   * is read first.
   */
  held = true;
  /**
   * By partition: position up to which the store's sums, as last read, include the
   * organization's use.
   */
  readonly summed = new Map<number, number>();
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

  agentTotal(agent_id: string, { from, until }: Hours): Used {
    const total = nothingUsed();
    for (const hour of this.#hours.keys()) {
      const own = hour >= from && hour < until ? this.#agents.get(keyOf({ hour, agent_id })) : undefined;
      if (own !== undefined) addUsed(total, own);
    }
    return total;
  }
}

function addIn<K>(sums: Map<K, Used>, key: K, use: Used, sign: 1 | -1): void {
  const sum = sums.get(key) ?? nothingUsed();
  addUsed(sum, use, sign);
  if (isNothing(sum)) sums.delete(key);
  else sums.set(key, sum);
}

/** By partition, then by hour and agent; agents that are not counted separately are summed. */
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

/** Returns the same use in the fewest rows that the account distinguishes. */
export const mergedUses = (agents: ReadonlySet<string>, asked: readonly AskedUse[]): AskedUse[] =>
  flat(summed(agents, asked));

/** Reservations that end with one message of the log. */
interface Slot {
  seq: number;
  uses: Map<Reserves, Map<string, AskedUse>>;
}

/** Key of hour and agent; the slot belongs to one partition. */
const keyOf = ({ hour, agent_id }: Pick<AskedUse, 'hour' | 'agent_id'>): string => `${hour} ${agent_id}`;

export class ReservationQueue {
  /** By partition: position up to which it has landed. */
  readonly #landed = new Map<number, number>();
  /** By partition, in the order of their positions. */
  readonly #waiting = new Map<number, Slot[]>();
  #backlogThrough: (partition: number) => number = () => 0;

  /**
   * From now on `logged` alone counts the messages up to this position of each partition; see
   * UsageLedger.beginBacklog.
   */
  beginBacklog(through: (partition: number) => number): void {
    this.#backlogThrough = through;
    for (const partition of this.#waiting.keys()) this.#release(partition, through(partition), () => true);
  }

  /** Counts the use of a message in the log until it has landed. */
  logged(
    reserves: Reserves,
    agents: ReadonlySet<string>,
    { uses, seq }: { uses: readonly AskedUse[]; seq: number },
  ): void {
    for (const [partition, sums] of summed(agents, uses)) {
      if (this.#isSummed(reserves, partition, seq)) continue;
      for (const use of sums.values()) reserves.add(use, 1);
      this.#await(partition, seq, reserves, sums);
    }
  }

  /**
   * Reserves use.
   * @param agents agents that are counted separately
   */
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
          if (seq <= this.#backlogThrough(partition) || this.#isSummed(reserves, partition, seq))
            giveBack(reserves, sums);
          else this.#await(partition, seq, reserves, sums);
        }
      },
    };
  }

  /** Returns true when the account counts a message's use as landed. */
  #isSummed({ held, summed: read }: Reserves, partition: number, seq: number): boolean {
    return seq <= (read.get(partition) ?? 0) || (!held && seq <= (this.#landed.get(partition) ?? 0));
  }

  #await(partition: number, seq: number, reserves: Reserves, sums: Map<string, AskedUse>): void {
    const queue = this.#waiting.get(partition) ?? [];
    this.#waiting.set(partition, queue);
    // Confirmations arrive nearly in the order of the log, so the search starts at the end.
    let at = queue.length;
    while (at > 0 && (queue[at - 1]?.seq ?? 0) > seq) at--;
    let slot = queue[at - 1];
    if (slot?.seq !== seq) {
      slot = { seq, uses: new Map() };
      queue.splice(at, 0, slot);
    }
    addTo(slot, reserves, sums);
    if (queue.length > SLOTS_MAX) this.#waiting.set(partition, coarser(queue));
  }

  /** Records that a partition has landed up to a position. */
  landed(partition: number, through: number): void {
    if (through <= (this.#landed.get(partition) ?? 0)) return;
    this.#landed.set(partition, through);
    this.#release(partition, through, ({ held }) => !held);
  }

  /** Releases what an account counts as landed, after its sums were read or it was closed. */
  releaseSummed(reserves: Reserves): void {
    for (const partition of this.#waiting.keys()) {
      const reported = reserves.held ? 0 : (this.#landed.get(partition) ?? 0);
      this.#release(partition, Math.max(reported, reserves.summed.get(partition) ?? 0), (whose) => whose === reserves);
    }
  }

  /** Ends the reservations up to a message of the log for the accounts that count it as landed. */
  #release(partition: number, through: number, counts: (reserves: Reserves) => boolean): void {
    const queue = this.#waiting.get(partition) ?? [];
    const first = queue.findIndex(({ seq }) => seq > through);
    const landed = queue.splice(0, first < 0 ? queue.length : first);
    const kept = landed.filter((slot) => {
      for (const [reserves, sums] of slot.uses) {
        if (!counts(reserves)) continue;
        giveBack(reserves, sums);
        slot.uses.delete(reserves);
      }
      return slot.uses.size > 0;
    });
    queue.unshift(...kept);
  }
}

/**
 * Merges the queue into at most half of SLOTS_MAX slots, each an equal stretch of the log, released
 * with its last message.
 */
function coarser(queue: readonly Slot[]): Slot[] {
  const range = (queue.at(-1)?.seq ?? 0) - (queue[0]?.seq ?? 0);
  const width = 2 ** Math.ceil(Math.log2(Math.max(1, range / (SLOTS_MAX / 2 - 1))));
  const slots: Slot[] = [];
  for (const slot of queue) {
    const last = slots.at(-1);
    if (last === undefined || Math.floor(last.seq / width) !== Math.floor(slot.seq / width)) {
      slots.push(slot);
      continue;
    }
    last.seq = slot.seq;
    for (const [whose, more] of slot.uses) addTo(last, whose, more);
  }
  return slots;
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
