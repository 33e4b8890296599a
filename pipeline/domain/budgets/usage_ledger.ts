// What each budgeted org has used in its period, in memory: the sum of what has landed, plus what has been let in and has
// not landed yet. In: sums read from the store, reports of landings, reservations. Out: totals at any moment. Pure: it reads
// no clock and no store.
//
// Every row of usage has a place (partition, log_seq) and all rows of one landing in a partition share it. So a report that
// arrives twice, or that the store's sums hold already, is known by its place and counted once. Each report names the one
// before it, so the ledger notices a lost report with the next one: from then on the account counts no reports until its sums
// have been read again. A reservation whose place in the log is known ends with the sums that carry this place, whether a
// report or a read of the store brought them. So use that has landed and is still reserved is counted once at every moment,
// and an account never holds less than what was admitted here.
import { addUsed, nothingUsed, type Used } from './budget.ts';
import { type AskedUse, LettingIn, mergedUses, type Reservation, Reserves } from './usage_reserves.ts';

export type { AskedUse, Reservation } from './usage_reserves.ts';

/** Reports that may come in while an org's sums are being read; beyond it they are read once more. */
const PENDING_MAX = 10_000;

/** Use of one org and agent in an hour (UTC), as one landing wrote it. */
export interface UsageRow extends Used {
  org_id: string;
  agent_id: string;
  /** Start of the hour of receipt, milliseconds. */
  hour: number;
}

/** A landing in one partition, or only how far it is. */
export interface LandedReport {
  partition: number;
  /** Of the ownership under which it landed; a later owner has a greater one. */
  epoch: number;
  /** JetStream sequence up to which the partition has landed. */
  landed_through: number;
  /** Place of the rows of the report before this one of the same epoch; 0 before the first. */
  after: number;
  /** Place of the rows, as the store has it. */
  log_seq: number;
  rows: readonly UsageRow[];
}

/** Sums of the store for one org and period, by partition and agent. */
export interface StoredSum extends Used {
  partition: number;
  /** Greatest log_seq among the rows. */
  log_seq: number;
  /** Empty for all agents that have no limits of their own. */
  agent_id: string;
}

/** What an account counts: the hours of a period, and apart the tokens of agents that have limits of their own. */
export interface AccountScope {
  /** First instant of the period, milliseconds. */
  from: number;
  /** First instant after it. */
  until: number;
  agents: ReadonlySet<string>;
}

interface Account {
  scope: AccountScope;
  /** Null until the store's sums of the period have been read. */
  settled: Settled | null;
  /** Also when it needs to be read again: holds what was let in. */
  reserves: Reserves;
  /** By partition: place up to which rows are counted. */
  through: Map<number, number>;
  /** Reports since a read of the store began; null while none is under way. */
  pending: LandedReport[] | null;
  /** A read that is under way may lack what was lost since it began. */
  torn: boolean;
}

interface Settled {
  org: Used;
  /** Tokens by agent. */
  agents: Map<string, number>;
}

export class UsageLedger {
  readonly #accounts = new Map<string, Account>();
  readonly #lettingIn = new LettingIn();
  /** By partition: the newest report. */
  readonly #heard = new Map<number, { epoch: number; log_seq: number }>();
  #gap = false;

  /**
   * Keeps an org's account for a period; what it held of another one is forgotten.
   * @returns whether it has to be read from the store
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

  /** Whether the store's sums of the org are in. */
  isSettled(org_id: string): boolean {
    return this.#accounts.get(org_id)?.settled != null;
  }

  /** Whether a report was lost since this was asked last: every account has to be read again then. */
  takeGap(): boolean {
    const gap = this.#gap;
    this.#gap = false;
    return gap;
  }

  /** A read of the org's sums begins: reports are remembered until it ends. */
  beginRead(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return;
    account.pending = [];
    account.torn = false;
  }

  /** The read has failed: all stays as it is. */
  abandonRead(org_id: string): void {
    const account = this.#accounts.get(org_id);
    if (account !== undefined) account.pending = null;
  }

  /**
   * Takes the sums of what `scope` names, as they were read from the store.
   * @param logBase what the store adds to JetStream sequences of this log; null while no row of this log has landed
   * @returns false when the read has to be repeated: the scope has changed, a report was lost, or too much came in meanwhile
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
    // Rows of an older log stand at or below the base: no message of this log is among them.
    if (logBase !== null)
      for (const [partition, log_seq] of account.through) account.reserves.summed.set(partition, log_seq - logBase);
    for (const report of pending) this.#count(org_id, account, report);
    this.#lettingIn.releaseSummed(account.reserves);
    return true;
  }

  /** A landing was reported. @returns the orgs whose totals have moved */
  landed(report: LandedReport): string[] {
    const { partition, epoch, landed_through, after, log_seq, rows } = report;
    const heard = this.#heard.get(partition);
    const newest = Math.max(after, rows.length > 0 ? log_seq : 0);
    const repeated = heard?.epoch === epoch && newest <= heard.log_seq && rows.length > 0;
    // An owner that was paused says late what its follower has said since.
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
    // After the rows: at no moment is what has just landed counted in neither.
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

  /** What the org has used, let in or landed, in its period. */
  used(org_id: string): Used {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return nothingUsed();
    const total = account.reserves.total(account.scope);
    if (account.settled !== null) addUsed(total, account.settled.org);
    return total;
  }

  /** Tokens of an agent that has limits of its own, likewise. */
  agentTokens(org_id: string, agent_id: string): number {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return 0;
    return (account.settled?.agents.get(agent_id) ?? 0) + account.reserves.agentTokens(agent_id, account.scope);
  }

  /**
   * Makes the messages that the log holds up to a JetStream sequence the business of countLogged alone: a reservation that is
   * confirmed at or below it ends at once.
   */
  beginBacklog(through: number): void {
    this.#lettingIn.beginBacklog(through);
  }

  /** Counts the use in a message of the log that was stored before this process began, until it has landed. */
  countLogged(org_id: string, uses: readonly AskedUse[], seq: number): void {
    const account = this.#accounts.get(org_id);
    if (account !== undefined) this.#lettingIn.logged(account.reserves, account.scope.agents, { uses, seq });
  }

  /** The same use in as few rows as the org's account counts it by. */
  merged(org_id: string, uses: readonly AskedUse[]): AskedUse[] {
    return mergedUses(this.#accounts.get(org_id)?.scope.agents ?? new Set(), uses);
  }

  /** Counts what is let in now, until it has landed or is cancelled. Exactly one of the two functions has to be called. */
  reserve(org_id: string, uses: readonly AskedUse[]): Reservation {
    const account = this.#accounts.get(org_id);
    if (account === undefined) return { uses: [], cancel: () => undefined, confirm: () => undefined };
    return this.#lettingIn.reserve(account.reserves, account.scope.agents, uses);
  }
}

function tally(to: Settled, { agents }: AccountScope, agent_id: string, used: Used): void {
  addUsed(to.org, used);
  if (agents.has(agent_id)) to.agents.set(agent_id, (to.agents.get(agent_id) ?? 0) + used.tokens);
}
