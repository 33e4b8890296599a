// The use of each organization with a budget in its current period, in memory: the sum of what has
// landed plus what is reserved. In: sums read from the store, landing reports, reservations. Out:
// totals at any moment. Pure: it reads no clock and no store.
//
// Every usage row has a place (partition, log_seq), which all rows of one landing in a partition
// share. A report that arrives twice, or that the store's sums already include, is recognised by
// its place and counted once. Each report names its predecessor, so the next report reveals a lost
// one: from then on the account ignores reports until its sums have been read again. A reservation
// whose place in the ingest log is known ends when the sums include that place, whether a report or
// a read of the store brought them. So use that has landed and is still reserved is counted once at
// every moment, and an account never holds less than what was admitted here.
import { addUsed, nothingUsed, type Used } from './budget.ts';
import { type AskedUse, ReservationQueue, mergedUses, type Reservation, Reserves } from './usage_reserves.ts';

export type { AskedUse, Reservation } from './usage_reserves.ts';

/**
 * Maximum reports buffered while an organization's sums are being read; beyond it they are read
 * once more.
 */
const PENDING_MAX = 10_000;

/** Use of one organization and agent in one hour (UTC), as one landing wrote it. */
export interface UsageRow extends Used {
  org_id: string;
  agent_id: string;
  /** Start of the hour of receipt, milliseconds. */
  hour: number;
}

/** Report of a landing in one partition; without rows it reports progress only. */
export interface LandedReport {
  partition: number;
  /** Epoch of the ownership under which the rows landed; a later owner has a greater one. */
  epoch: number;
  /** Position in the log up to which the partition has landed. */
  landed_through: number;
  /** Place of the rows of the previous report of the same epoch; 0 for the first. */
  after: number;
  /** Place of the rows, as the store has it. */
  log_seq: number;
  rows: readonly UsageRow[];
}

/** Sums of the store for one organization and period, by partition and agent. */
export interface StoredSum extends Used {
  partition: number;
  /** Greatest log_seq among the rows. */
  log_seq: number;
  /** Empty for the sum of all agents without limits of their own. */
  agent_id: string;
}

/**
 * What an account counts: the hours of a period and, separately, the use of agents with limits
 * of their own.
 */
export interface AccountScope {
  /** First instant of the period, milliseconds. */
  from: number;
  /** First instant after the period. */
  until: number;
  agents: ReadonlySet<string>;
}

interface Account {
  scope: AccountScope;
  /** Null until the store's sums of the period have been read. */
  settled: Settled | null;
  /** Reservations; kept while the sums are read again. */
  reserves: Reserves;
  /** By partition: place up to which rows are counted. */
  through: Map<number, number>;
  /** Reports received since a read of the store began; null while none is in progress. */
  pending: LandedReport[] | null;
  /** True when a report was lost during a read of the store, whose result may lack it. */
  torn: boolean;
}

interface Settled {
  org: Used;
  /** Use by agent. */
  agents: Map<string, Used>;
}

export class UsageLedger {
  readonly #accounts = new Map<string, Account>();
  readonly #lettingIn = new ReservationQueue();
  /** By partition: the newest report. */
  readonly #heard = new Map<number, { epoch: number; log_seq: number }>();
  #gap = false;

  /**
   * Opens an organization's account for a period and drops its account for another one.
   * @returns true when its sums have to be read from the store
   */
  open(org_id: string, scope: AccountScope): boolean {
    const known = this.#accounts.get(org_id);
    if (known === undefined) {
      this.#accounts.set(org_id, {
        scope,
        settled: null,
        reserves: new Reserves(),
        through: new Map(),
        pending: null,
        torn: false,
      });
      return true;
    }
    const before = known.scope;
    known.scope = scope;
    if (before.from !== scope.from || before.until !== scope.until) {
      known.settled = null;
      known.reserves.summed.clear();
    } else if ([...scope.agents].every((agent_id) => before.agents.has(agent_id))) return false;
    this.#stale(known);
    return true;
  }

  close(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return;
    this.#accounts.delete(org_id);
    account.reserves.held = false;
    this.#lettingIn.releaseSummed(account.reserves);
  }

  /** Returns true once the store's sums of the organization have been read. */
  isSettled(org_id: string): boolean {
    return this.#accounts.get(org_id)?.settled != null;
  }

  /**
   * Returns whether a report was lost since the last call: then every account has to be read again.
   */
  takeGap(): boolean {
    const gap = this.#gap;
    this.#gap = false;
    return gap;
  }

  /** Marks the start of a read of the organization's sums: reports are buffered until it ends. */
  beginRead(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return;
    account.pending = [];
    account.torn = false;
  }

  /** Marks a read as failed; the account stays as it was. */
  abandonRead(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account !== undefined) account.pending = null;
  }

  /**
   * Sets the sums of `scope` as read from the store.
   * @param logBase what the store adds to the positions of this log; null while no row of
   * this log has landed
   * @returns false when the read has to be repeated: the scope changed, a report was lost, or too
   * many reports arrived meanwhile
   */
  endRead(org_id: string, scope: AccountScope, sums: readonly StoredSum[], logBase: number | null): boolean {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return true;
    const { pending, torn } = account;
    account.pending = null;
    if (account.scope !== scope || pending === null || torn || pending.length > PENDING_MAX) return false;
    account.settled = { org: nothingUsed(), agents: new Map() };
    account.through = new Map();
    account.reserves.held = false;
    for (const sum of sums) {
      tally(account.settled, scope, sum.agent_id, sum);
      account.through.set(sum.partition, Math.max(sum.log_seq, account.through.get(sum.partition) ?? 0));
    }
    account.reserves.summed.clear();
    // Rows of an older log lie at or below the base: no message of this log is among them.
    if (logBase !== null)
      for (const [partition, log_seq] of account.through) account.reserves.summed.set(partition, log_seq - logBase);
    for (const report of pending) this.#count(org_id, account, report);
    this.#lettingIn.releaseSummed(account.reserves);
    return true;
  }

  /**
   * Counts a reported landing.
   * @returns the organizations whose totals changed
   */
  landed(report: LandedReport): string[] {
    const { partition, epoch, landed_through, after, log_seq, rows } = report;
    const heard = this.#heard.get(partition);
    const newest = Math.max(after, rows.length > 0 ? log_seq : 0);
    const repeated = heard?.epoch === epoch && newest <= heard.log_seq && rows.length > 0;
    // A paused owner may report late what its successor has already reported.
    if (repeated || epoch < (heard?.epoch ?? 0)) return [];
    if (heard?.epoch !== epoch || heard.log_seq !== after) {
      this.#gap = true;
      for (const account of this.#accounts.values()) this.#stale(account);
    }
    this.#heard.set(partition, { epoch, log_seq: newest });
    const moved = [...new Set(rows.map(({ org_id }) => org_id))].filter((org_id) => this.#accounts.has(org_id));
    for (const org_id of moved) {
      const account = this.#accounts.get(org_id);
      if (account === undefined) continue;
      if (account.pending !== null && account.pending.length <= PENDING_MAX) account.pending.push(report);
      if (!account.reserves.held) this.#count(org_id, account, report);
    }
    // Released only after the rows are counted, so that landed use is counted at every moment.
    this.#lettingIn.landed(partition, landed_through);
    return moved;
  }

  #stale(account: Account): void {
    account.reserves.held = true;
    account.torn = true;
  }

  #count(org_id: string, { scope, settled, through }: Account, { partition, log_seq, rows }: LandedReport): void {
    if (settled === null || log_seq <= (through.get(partition) ?? 0)) return;
    through.set(partition, log_seq);
    for (const row of rows) {
      if (row.org_id === org_id && row.hour >= scope.from && row.hour < scope.until)
        tally(settled, scope, row.agent_id, row);
    }
  }

  /** Returns the organization's use in its period: landed plus reserved. */
  used(org_id: string): Used {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return nothingUsed();
    const total = account.reserves.total(account.scope);
    if (account.settled !== null) addUsed(total, account.settled.org);
    return total;
  }

  /** Returns the use, landed plus reserved, of an agent with limits of its own. */
  agentUsed(org_id: string, agent_id: string): Used {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return nothingUsed();
    const total = account.reserves.agentTotal(agent_id, account.scope);
    const landed = account.settled?.agents.get(agent_id);
    if (landed !== undefined) addUsed(total, landed);
    return total;
  }

  /**
   * Leaves the messages up to a position of each partition to countLogged alone: a reservation
   * confirmed at or below it ends at once.
   */
  beginBacklog(through: (partition: number) => number): void {
    this.#lettingIn.beginBacklog(through);
  }

  /**
   * Counts the use of a message stored in the log before this process began, until it has landed.
   */
  countLogged(org_id: string, uses: readonly AskedUse[], seq: number): void {
    const account = this.#accounts.get(org_id);
    if (account !== undefined) this.#lettingIn.logged(account.reserves, account.scope.agents, { uses, seq });
  }

  /** Returns the same use in the fewest rows that the organization's account distinguishes. */
  merged(org_id: string, uses: readonly AskedUse[]): AskedUse[] {
    return mergedUses(this.#accounts.get(org_id)?.scope.agents ?? new Set(), uses);
  }

  /**
   * Reserves use until it has landed or is cancelled. The caller must confirm or cancel the
   * reservation, exactly once.
   */
  reserve(org_id: string, uses: readonly AskedUse[]): Reservation {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return { uses: [], cancel: () => undefined, confirm: () => undefined };
    return this.#lettingIn.reserve(account.reserves, account.scope.agents, uses);
  }
}

function tally(to: Settled, { agents }: AccountScope, agent_id: string, used: Used): void {
  addUsed(to.org, used);
  if (!agents.has(agent_id)) return;
  const own = to.agents.get(agent_id) ?? nothingUsed();
  addUsed(own, used);
  to.agents.set(agent_id, own);
}
