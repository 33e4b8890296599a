// Keeps a ledger of usage right: reads an org's sums from the store when its account is opened, hears of every landing, and
// reads again when a report was lost, after a lost connection, and now and then. The store away: accounts stand still.
import type { NatsConnection } from '@nats-io/transport-node';
import type { AccountScope, UsageLedger } from '../../pipeline/domain/budgets/usage_ledger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readPeriodSums } from '../../sql/stores/usage.ts';
import type { Landing } from '../../schemas/signals/landing_reports.ts';
import { hearLanded } from './landing_reports.ts';

/** Every account is read again after this, whatever was heard. */
const REREAD_MS = 300_000;
/** Who reports landings begins to report an org's a moment after its limit was set: it is read again when that is past. */
const SECOND_READ_MS = 1000;
/** Reads of the store at a time. */
const READS_MAX = 4;
const TICK_MS = 250;
/** After a read that failed. */
const RETRY_MS = 1000;

/** The period in which an org's budget counts now, milliseconds. */
export interface AccountPeriod {
  start: number;
  end: number;
}

export interface FollowerDeps {
  nc: NatsConnection;
  clickhouse: ClickHouse;
  ledger: UsageLedger;
  /** Decimal USD to pico-USD. */
  toPico: (usd: string) => bigint;
  now: () => number;
  /** What the store adds to JetStream sequences of the log; null while no worker has settled it, and no row has landed. */
  logBase: () => Promise<number | null>;
  periodOf: (org_id: string) => AccountPeriod;
  /** Told of every report, once it is counted. */
  onReports?: (reports: readonly Landing[]) => void;
  /** Told of the orgs whose totals have moved, or have just been read. */
  onMoved: (orgs: readonly string[]) => void;
  /** Told after every read how many accounts could not be read when they were due. */
  onUnread?: (accounts: number) => void;
  onProblem: (problem: string, cause: unknown) => void;
}

interface Followed {
  scope: AccountScope;
  /** When the account is read next, on the monotonic clock. */
  due: number;
  reading: boolean;
  /** What is being read now is to be read once more. */
  again: boolean;
  /** Not read since it is followed. */
  fresh: boolean;
  /** When the last read that succeeded began, on the monotonic clock; -Infinity before the first. */
  read_at: number;
  /** The last try to read it failed. */
  failed: boolean;
  /** Who waits for the next read that succeeds. */
  waiting: (() => void)[];
}

export class UsageFollower {
  readonly #deps: FollowerDeps;
  readonly #followed = new Map<string, Followed>();
  readonly #stopHearing: () => void;
  readonly #timer: NodeJS.Timeout;
  /** Resolves when the server has the subscription: what is read after that misses no report. */
  readonly #heard: Promise<void>;
  #reading = 0;
  /** Orgs whose account is read as soon as another read has ended; those for which a caller waits come first. */
  readonly #urgent = new Set<string>();
  readonly #waiting = new Set<string>();
  /** Said once until a read works again. */
  #failing = false;
  #closed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#stopHearing = hearLanded(
      deps.nc,
      (reports) => {
        const moved = new Set(reports.flatMap((report) => deps.ledger.landed(report)));
        if (deps.ledger.takeGap()) this.rereadAll();
        deps.onReports?.(reports);
        if (moved.size > 0) deps.onMoved([...moved]);
      },
      deps.onProblem,
    );
    this.#heard = deps.nc.flush().catch(() => undefined);
    this.#timer = setInterval(() => {
      this.#readDue();
    }, TICK_MS);
    this.#timer.unref();
    void this.#followConnection();
  }

  /** Keeps the org's account from now on, with the tokens of these agents apart; called again when they change. */
  follow(org_id: string, agents: readonly string[]): void {
    const known = this.#followed.get(org_id);
    const { start, end } = this.#deps.periodOf(org_id);
    const scope: AccountScope = { from: start, until: end, agents: new Set(agents) };
    const stale = this.#deps.ledger.open(org_id, scope);
    if (known === undefined) {
      const unread = {
        due: 0,
        reading: false,
        again: false,
        fresh: true,
        read_at: -Infinity,
        failed: false,
        waiting: [],
      };
      this.#followed.set(org_id, { scope, ...unread });
    } else {
      known.scope = scope;
      if (stale) known.due = 0;
    }
    this.#readDue();
  }

  /** Resolves when the account counts what was used, as it was followed last, or after `withinMs` milliseconds if that takes longer. */
  async whenRead(org_id: string, withinMs: number): Promise<void> {
    const followed = this.#followed.get(org_id);
    if (followed === undefined || (!followed.fresh && followed.due > 0)) return;
    const read = Promise.withResolvers<undefined>();
    const timer = setTimeout(read.resolve, withinMs, undefined);
    followed.waiting.push(() => {
      read.resolve(undefined);
    });
    if (this.#waiting.delete(org_id)) this.#urgent.add(org_id);
    await read.promise;
    clearTimeout(timer);
  }

  /** When the last read of the org's sums that succeeded began, on the monotonic clock; -Infinity before the first. */
  readAt(org_id: string): number {
    return this.#followed.get(org_id)?.read_at ?? -Infinity;
  }

  unfollow(org_id: string): void {
    this.#followed.delete(org_id);
    this.#deps.ledger.close(org_id);
  }

  /** The org's period as of now, which its account counts from this call on: a new one begins at its first instant. */
  period(org_id: string): AccountPeriod {
    const period = this.#deps.periodOf(org_id);
    const followed = this.#followed.get(org_id);
    if (followed !== undefined && (followed.scope.from !== period.start || followed.scope.until !== period.end)) {
      followed.scope = { from: period.start, until: period.end, agents: followed.scope.agents };
      this.#deps.ledger.open(org_id, followed.scope);
      followed.due = 0;
    }
    return period;
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    this.#stopHearing();
  }

  #readDue(): void {
    const now = performance.now();
    for (const [org_id, followed] of this.#followed) {
      this.period(org_id);
      if (followed.reading || followed.due > now || this.#urgent.has(org_id)) continue;
      if (followed.waiting.length > 0) this.#urgent.add(org_id);
      else this.#waiting.add(org_id);
    }
    this.#readWaiting();
  }

  #readWaiting(): void {
    for (const orgs of [this.#urgent, this.#waiting]) {
      for (const org_id of orgs) {
        if (this.#reading >= READS_MAX || this.#closed) return;
        orgs.delete(org_id);
        const followed = this.#followed.get(org_id);
        if (followed?.reading === false) void this.#read(org_id, followed);
      }
    }
  }

  async #read(org_id: string, followed: Followed): Promise<void> {
    const { ledger, clickhouse, toPico } = this.#deps;
    followed.reading = true;
    followed.again = false;
    this.#reading++;
    try {
      await this.#heard;
      const began = performance.now();
      const { scope } = followed;
      const { from, until } = scope;
      ledger.beginRead(org_id);
      const rows = await readPeriodSums(clickhouse, { org_id, from, until, agents: [...scope.agents] });
      const sums = rows.map(({ cost_usd, ...row }) => ({ ...row, cost_pico_usd: toPico(cost_usd) }));
      // After the read: while there is no base, none of the rows can be of this log.
      const done = ledger.endRead(org_id, scope, sums, await this.#deps.logBase());
      const whole = done && !followed.again;
      followed.due = whole ? performance.now() + (followed.fresh ? SECOND_READ_MS : REREAD_MS) : 0;
      followed.fresh = !done;
      if (done) followed.read_at = began;
      followed.failed = false;
      if (whole) for (const tell of followed.waiting.splice(0)) tell();
      this.#failing = false;
      this.#deps.onMoved([org_id]);
    } catch (cause) {
      ledger.abandonRead(org_id);
      followed.due = performance.now() + RETRY_MS;
      followed.failed = true;
      if (!this.#failing && !this.#closed)
        this.#deps.onProblem('usage of orgs cannot be read; their accounts stand still', cause);
      this.#failing = true;
    } finally {
      followed.reading = false;
      this.#reading--;
      this.#deps.onUnread?.([...this.#followed.values()].filter(({ failed }) => failed).length);
      this.#readWaiting();
    }
  }

  /** Every account is read again as soon as may be. */
  rereadAll(): void {
    for (const followed of this.#followed.values()) {
      followed.due = 0;
      followed.again = followed.reading;
    }
  }

  async #followConnection(): Promise<void> {
    for await (const status of this.#deps.nc.status()) {
      if (this.#closed) return;
      if (status.type === 'reconnect') this.rereadAll();
    }
  }
}
