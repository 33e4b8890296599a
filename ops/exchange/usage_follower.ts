// Keeps a usage ledger correct: it reads an organization's sums from the store when its account is
// opened, counts every landing report, and reads the sums again after a lost report, after a lost
// connection, and at intervals. While the store is unavailable, accounts stand still. An account is
// that of an organization or of the budget of an API key (accounts.ts).
import type { NatsConnection } from '@nats-io/transport-node';
import type { ReportProblem } from '../platform/report_problem.ts';
import { keyAccount, keyOfAccount } from '../../schemas/accounts.ts';
import type { AccountScope, UsageLedger } from '../../pipeline/domain/budgets/usage_ledger.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { readPeriodSums } from '../../sql/stores/usage.ts';
import type { LandingReport } from '../../schemas/signals/landing_reports.ts';
import { followLandingReports } from './landing_reports.ts';

/** Maximum age of an account's sums; they are read again after this time, whatever was reported. */
const REREAD_MS = 300_000;
/**
 * Delay of the second read. Workers begin to report an organization's landings a moment after its
 * limit is set; the second read covers that moment.
 */
const SECOND_READ_MS = 1000;
/** Maximum number of concurrent reads of the store. */
const READS_MAX = 4;
const TICK_MS = 250;
/** Pause after a failed read. */
const RETRY_MS = 1000;

/** The current period of an organization's budget, in milliseconds. */
export interface AccountPeriod {
  start: number;
  end: number;
}

export interface FollowerDeps {
  nc: NatsConnection;
  clickhouse: ClickHouse;
  ledger: UsageLedger;
  /** Converts decimal USD to pico-USD. */
  toPico: (usd: string) => bigint;
  now: () => number;
  /**
   * Returns the number that the store adds to positions of the log; null until a worker
   * has written it, and no row has landed before that.
   */
  logBase: () => Promise<number | null>;
  periodOf: (org_id: string) => AccountPeriod;
  /** Called with the organizations whose totals have changed or have just been read. */
  onMoved: (orgs: readonly string[]) => void;
  /** Called after every read with the number of accounts whose due read failed. */
  onUnread?: (accounts: number) => void;
  onProblem: ReportProblem;
}

/** Adds to each row of an API key a row for the account of the key's budget. */
function withKeyRows(report: LandingReport): LandingReport {
  if (report.rows.every(({ key_id }) => key_id === '')) return report;
  const rows = report.rows.flatMap((row) =>
    row.key_id === '' ? [row] : [row, { ...row, org_id: keyAccount(row.org_id, row.key_id), agent_id: '' }],
  );
  return { ...report, rows };
}

interface Followed {
  scope: AccountScope;
  /** Time of the account's next read, on the monotonic clock. */
  due: number;
  reading: boolean;
  /** True: the running read has to be repeated. */
  again: boolean;
  /** True until the first complete read. */
  fresh: boolean;
  /** Start of the last successful read on the monotonic clock; -Infinity before the first. */
  read_at: number;
  /** True when the last read failed. */
  failed: boolean;
  /** Callers that wait for the next complete read, or for one that fails. */
  waiting: (() => void)[];
}

export class UsageFollower {
  readonly #deps: FollowerDeps;
  readonly #followed = new Map<string, Followed>();
  readonly #reportListeners: ((reports: readonly LandingReport[]) => void)[] = [];
  readonly #stopHearing: () => void;
  readonly #timer: NodeJS.Timeout;
  /** Resolves once the server has the subscription; a later read misses no report. */
  readonly #heard: Promise<void>;
  #reading = 0;
  /**
   * Organizations whose account is read as soon as another read has ended. Those in #urgent, for
   * which a caller waits, come first.
   */
  readonly #urgent = new Set<string>();
  readonly #waiting = new Set<string>();
  /** True while reads fail, so that the problem is reported once. */
  #failing = false;
  #closed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#stopHearing = followLandingReports(
      deps.nc,
      (reports) => {
        const moved = new Set(reports.flatMap((report) => deps.ledger.landed(withKeyRows(report))));
        if (deps.ledger.takeGap()) this.rereadAll();
        for (const listener of this.#reportListeners) listener(reports);
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

  /** Calls back with every landing report from now on, once it is counted. */
  onReports(listener: (reports: readonly LandingReport[]) => void): void {
    this.#reportListeners.push(listener);
  }

  /**
   * Keeps the organization's account from now on, counting the tokens of these agents separately.
   * It is called again when the agents change.
   */
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

  /**
   * Resolves once the account counts everything that was used, with the agents given last; when a
   * read fails, because the store is unavailable; and after `withinMs` milliseconds at the latest.
   */
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

  /**
   * Returns the start of the last successful read of the organization's sums on the monotonic
   * clock; -Infinity before the first.
   */
  readAt(org_id: string): number {
    return this.#followed.get(org_id)?.read_at ?? -Infinity;
  }

  unfollow(org_id: string): void {
    this.#followed.delete(org_id);
    this.#deps.ledger.close(org_id);
  }

  /**
   * Returns the organization's current period. The account counts this period from the call on, so
   * a new period begins at its first instant.
   */
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
      const whose = keyOfAccount(org_id) ?? { org_id };
      const rows = await readPeriodSums(clickhouse, { ...whose, from, until, agents: [...scope.agents] });
      const sums = rows.map(({ cost_usd, ...row }) => ({ ...row, cost_pico_usd: toPico(cost_usd) }));
      // Read after the sums: while the number is unknown, none of the rows can come from this log.
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
      for (const tell of followed.waiting.splice(0)) tell();
      if (!this.#failing && !this.#closed)
        this.#deps.onProblem('the usage of organizations cannot be read; their accounts stand still', cause);
      this.#failing = true;
    } finally {
      followed.reading = false;
      this.#reading--;
      this.#deps.onUnread?.([...this.#followed.values()].filter(({ failed }) => failed).length);
      this.#readWaiting();
    }
  }

  /** Reads every account again as soon as possible. */
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
