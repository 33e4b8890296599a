// Keeps a ledger of usage right: reads an org's sums from the store when its account is opened, hears of every landing, and
// reads again now and then, and after a lost connection, as reports can be lost. The store away: accounts stand still.
import type { NatsConnection } from '@nats-io/transport-node';
import type { UsageLedger } from '../pipeline/domain/usage_ledger.ts';
import type { ClickHouse } from '../sql/client.ts';
import { periodSums } from '../sql/usage.ts';
import { hearLanded } from './usage_feed.ts';

/** Every account is read again after this. */
const REREAD_MS = 30_000;
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
  periodOf: (org_id: string) => AccountPeriod;
  /** Told of the orgs whose totals have moved, or have just been read. */
  onMoved: (orgs: readonly string[]) => void;
  onProblem: (problem: string, cause: unknown) => void;
}

interface Followed {
  period: AccountPeriod;
  /** When the account is read next, on the monotonic clock. */
  due: number;
  reading: boolean;
}

export class UsageFollower {
  readonly #deps: FollowerDeps;
  readonly #followed = new Map<string, Followed>();
  readonly #stopHearing: () => void;
  readonly #timer: NodeJS.Timeout;
  #reading = 0;
  #closed = false;

  constructor(deps: FollowerDeps) {
    this.#deps = deps;
    this.#stopHearing = hearLanded(
      deps.nc,
      (reports) => {
        const moved = new Set(reports.flatMap((report) => deps.ledger.landed(report)));
        if (moved.size > 0) deps.onMoved([...moved]);
      },
      deps.onProblem,
    );
    this.#timer = setInterval(() => {
      this.#readDue();
    }, TICK_MS);
    this.#timer.unref();
    void this.#followConnection();
  }

  /** Keeps the org's account from now on. */
  follow(org_id: string): void {
    if (this.#followed.has(org_id)) return;
    const period = this.#deps.periodOf(org_id);
    this.#deps.ledger.open(org_id, period.start);
    this.#followed.set(org_id, { period, due: 0, reading: false });
    this.#readDue();
  }

  unfollow(org_id: string): void {
    this.#followed.delete(org_id);
    this.#deps.ledger.close(org_id);
  }

  /** The period of a followed org, as of now: a new one begins at its first instant, whoever asks first. */
  period(org_id: string): AccountPeriod {
    const followed = this.#followed.get(org_id);
    const now = this.#deps.now();
    if (followed !== undefined && now >= followed.period.start && now < followed.period.end) return followed.period;
    return this.renew(org_id);
  }

  /** Looks the period up again: the clock or the org's policy has moved. */
  renew(org_id: string): AccountPeriod {
    const period = this.#deps.periodOf(org_id);
    const followed = this.#followed.get(org_id);
    if (followed !== undefined) {
      if (followed.period.start !== period.start) followed.due = 0;
      followed.period = period;
      this.#deps.ledger.open(org_id, period.start);
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
      if (this.#reading >= READS_MAX || this.#closed) return;
      this.period(org_id);
      if (!followed.reading && followed.due <= now) void this.#read(org_id, followed);
    }
  }

  async #read(org_id: string, followed: Followed): Promise<void> {
    const { ledger, clickhouse, toPico } = this.#deps;
    const { start, end } = followed.period;
    followed.reading = true;
    this.#reading++;
    ledger.beginRead(org_id);
    try {
      const rows = await periodSums(clickhouse, { org_id, from: start, until: end });
      const sums = rows.map(({ cost_usd, ...row }) => ({ ...row, cost_pico_usd: toPico(cost_usd) }));
      followed.due = ledger.endRead(org_id, start, sums) ? performance.now() + REREAD_MS : 0;
      this.#deps.onMoved([org_id]);
    } catch (cause) {
      ledger.endRead(org_id, NaN, []);
      followed.due = performance.now() + RETRY_MS;
      this.#deps.onProblem('usage of an org could not be read; its account stands still', cause);
    } finally {
      followed.reading = false;
      this.#reading--;
    }
  }

  async #followConnection(): Promise<void> {
    for await (const status of this.#deps.nc.status()) {
      if (this.#closed) return;
      if (status.type === 'reconnect') for (const followed of this.#followed.values()) followed.due = 0;
    }
  }
}
