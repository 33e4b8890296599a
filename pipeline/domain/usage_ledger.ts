// What each budgeted org has used in its period, in memory: the sum of what has landed, plus what has been let in and has
// not landed yet. In: sums read from the store, reports of landings, reservations. Out: totals at any moment. Pure: it reads
// no clock and no store.
//
// Every row of usage has a place (partition, log_seq) and all rows of one landing in a partition share it. So a report that
// is told twice, or that the store's sums hold already, is known by its place and counted once.
import { addUsed, nothingUsed, type Used } from './budget.ts';

/** Reports that may come in while an org's sums are being read; beyond it they are read once more. */
const PENDING_MAX = 10_000;
/** Reservations of one partition that are kept apart; beyond it the newest ones are released together. */
const RESERVED_MAX = 50_000;

/** Use of one org and agent in an hour (UTC), as one landing wrote it. */
export interface UsageRow extends Used {
  org_id: string;
  agent_id: string;
  /** Start of the hour of receipt, milliseconds. */
  hour: number;
}

/** A landing in one partition. */
export interface LandedReport {
  partition: number;
  /** JetStream sequence up to which the partition has landed. */
  landed_through: number;
  /** Place of the rows, as the store has it. */
  log_seq: number;
  rows: readonly UsageRow[];
}

/** Sums of the store for one org and period, by partition and agent. */
export interface StoredSum extends Used {
  partition: number;
  /** Greatest log_seq among the rows. */
  log_seq: number;
  agent_id: string;
}

/** An event that asks to be let in. */
export interface AskedUse extends Used {
  agent_id: string;
  partition: number;
}

/** What was let in, until it has landed. */
export interface Reservation {
  /** The log has it: by partition, the JetStream sequence. */
  confirm: (positions: ReadonlyMap<number, number>) => void;
  /** It did not come in after all. */
  cancel: () => void;
}

interface Reserved {
  /** The account's, as it was when the use was let in: what is given back goes where it was taken. */
  tally: Tally;
  uses: readonly AskedUse[];
  seq: number;
}

interface Account {
  /** Start of the period, milliseconds; rows of earlier hours do not count. */
  from: number;
  /** Null until the store's sums have been read once. */
  settled: Tally | null;
  reserved: Tally;
  /** By partition: place up to which rows are counted. */
  through: Map<number, number>;
  /** Reports since a read of the store began; null while none is under way. */
  pending: LandedReport[] | null;
}

interface Tally {
  org: Used;
  /** Tokens by agent. */
  agents: Map<string, number>;
}

const emptyTally = (): Tally => ({ org: nothingUsed(), agents: new Map() });

function tally(to: Tally, agent_id: string, used: Used, sign: 1 | -1): void {
  addUsed(to.org, used, sign);
  const left = (to.agents.get(agent_id) ?? 0) + sign * used.tokens;
  if (left === 0) to.agents.delete(agent_id);
  else to.agents.set(agent_id, left);
}

export class UsageLedger {
  readonly #accounts = new Map<string, Account>();
  /** By partition: JetStream sequence up to which it has landed. */
  readonly #landed = new Map<number, number>();
  /** By partition, in the order of their sequences: what was let in and has not landed. */
  readonly #waiting = new Map<number, Reserved[]>();

  /** Begins to keep an org's account for the period that begins at `from`; what it held of another period is forgotten. */
  open(org_id: string, from: number): void {
    const known = this.#accounts.get(org_id);
    if (known?.from === from) return;
    this.#accounts.set(org_id, { from, settled: null, reserved: known?.reserved ?? emptyTally(), through: new Map(), pending: null });
  }

  close(org_id: string): void {
    this.#accounts.delete(org_id);
  }

  /** Whether the store's sums of the org are in. */
  isSettled(org_id: string): boolean {
    return this.#accounts.get(org_id)?.settled != null;
  }

  /** A read of the org's sums begins: reports are remembered until it ends. */
  beginRead(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account !== undefined) account.pending = [];
  }

  /**
   * The read has ended. @returns false when it has to be done again: the period has changed, or too much came in meanwhile
   */
  endRead(org_id: string, from: number, sums: readonly StoredSum[]): boolean {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return true;
    const { pending } = account;
    account.pending = null;
    if (account.from !== from || pending === null || pending.length > PENDING_MAX) return false;
    const settled = emptyTally();
    account.settled = settled;
    account.through = new Map();
    for (const sum of sums) {
      tally(settled, sum.agent_id, sum, 1);
      account.through.set(sum.partition, Math.max(sum.log_seq, account.through.get(sum.partition) ?? 0));
    }
    for (const report of pending) this.#count(org_id, account, report);
    return true;
  }

  /** A landing was reported. @returns the orgs whose totals have moved */
  landed(report: LandedReport): string[] {
    const moved = [...new Set(report.rows.map(({ org_id }) => org_id))].filter((org_id) => this.#accounts.has(org_id));
    for (const org_id of moved) {
      const account = this.#accounts.get(org_id);
      if (account === undefined) continue;
      if (account.pending !== null && account.pending.length <= PENDING_MAX) account.pending.push(report);
      this.#count(org_id, account, report);
    }
    // After the rows: at no moment is what has just landed counted in neither.
    this.#release(report.partition, report.landed_through);
    return moved;
  }

  #count(org_id: string, account: Account, { partition, log_seq, rows }: LandedReport): void {
    if (account.settled === null || log_seq <= (account.through.get(partition) ?? 0)) return;
    account.through.set(partition, log_seq);
    for (const row of rows) {
      if (row.org_id === org_id && row.hour >= account.from) tally(account.settled, row.agent_id, row, 1);
    }
  }

  /** What the org has used, let in or landed, in its period. */
  used(org_id: string): Used {
    const total = nothingUsed();
    const account = this.#accounts.get(org_id);
    if (account === undefined) return total;
    if (account.settled !== null) addUsed(total, account.settled.org);
    addUsed(total, account.reserved.org);
    return total;
  }

  /** Tokens of one agent, likewise. */
  agentTokens(org_id: string, agent_id: string): number {
    const account = this.#accounts.get(org_id);
    return (account?.settled?.agents.get(agent_id) ?? 0) + (account?.reserved.agents.get(agent_id) ?? 0);
  }

  /** Counts what is let in now, until it has landed or is cancelled. Exactly one of the two functions has to be called. */
  reserve(org_id: string, uses: readonly AskedUse[]): Reservation {
    const held = this.#accounts.get(org_id)?.reserved ?? emptyTally();
    for (const use of uses) tally(held, use.agent_id, use, 1);
    return {
      cancel: () => {
        giveBack({ tally: held, uses, seq: 0 });
      },
      confirm: (positions) => {
        for (const [partition, of] of Map.groupBy(uses, (use) => use.partition)) {
          const seq = positions.get(partition) ?? 0;
          const reserved = { tally: held, uses: of, seq };
          if (seq <= (this.#landed.get(partition) ?? 0)) giveBack(reserved);
          else this.#await(partition, reserved);
        }
      },
    };
  }

  #await(partition: number, reserved: Reserved): void {
    const queue = this.#waiting.get(partition) ?? [];
    this.#waiting.set(partition, queue);
    const last = queue.at(-1);
    if (queue.length >= RESERVED_MAX && last?.tally === reserved.tally)
      queue[queue.length - 1] = { tally: last.tally, uses: merged(last.uses, reserved.uses), seq: Math.max(last.seq, reserved.seq) };
    else queue.push(reserved);
  }

  #release(partition: number, landedThrough: number): void {
    if (landedThrough <= (this.#landed.get(partition) ?? 0)) return;
    this.#landed.set(partition, landedThrough);
    const queue = this.#waiting.get(partition);
    if (queue === undefined) return;
    // Confirmations come nearly in the order of the log; the few that do not are looked for.
    const left = queue.filter((one) => one.seq > landedThrough);
    for (const one of queue) if (one.seq <= landedThrough) giveBack(one);
    this.#waiting.set(partition, left);
  }
}

function giveBack({ tally: from, uses }: Reserved): void {
  for (const use of uses) tally(from, use.agent_id, use, -1);
}

/** Sums by agent, so that what is released together is small. */
function merged(a: readonly AskedUse[], b: readonly AskedUse[]): AskedUse[] {
  const byAgent = new Map<string, AskedUse>();
  for (const use of [...a, ...b]) {
    const known = byAgent.get(use.agent_id);
    if (known === undefined) byAgent.set(use.agent_id, { ...use });
    else addUsed(known, use);
  }
  return [...byAgent.values()];
}
