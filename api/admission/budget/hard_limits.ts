// The hard limits of an API process: opens what the budget check decides with. The follower keeps the accounts of
// organizations with a hard limit, the gate decides in memory, reservations are shared with the other API processes, and
// near a limit one decider decides for all.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { UsageFollower } from '../../../ops/exchange/usage_follower.ts';
import * as metrics from '../../../ops/platform/metrics.ts';
import { type Log, logBaseReader } from '../../../ops/platform/nats/open_log.ts';
import { hasHardLimit, limitedAgents } from '../../../pipeline/domain/budgets/budget.ts';
import { isRateAccount } from '../../../schemas/accounts.ts';
import type { PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { BudgetStore } from '../../control/budgets/store.ts';
import { AccountLedger } from './account_ledger.ts';
import { BudgetCheck } from './check.ts';
import { BudgetDeciders } from './deciders.ts';
import { BudgetGate } from './gate.ts';
import { LimitedAccounts, type LimitedKeys } from './limited_accounts.ts';
import { readLogEnd } from './log_end.ts';
import { RateWindows, WINDOW_MS } from './rate_windows.ts';
import { ReservationSharing } from './sharing.ts';
import { StartupKnowledge } from './startup_knowledge.ts';

export interface HardLimitsDeps {
  log: Log;
  clickhouse: ClickHouse;
  /** Every budget; the caller closes it. */
  budgets: BudgetStore;
  keys: LimitedKeys;
  prices: PriceBook;
  /** Number of partitions of the ingest log. */
  partitions: number;
  /** Returns the rule by which the organization's budget starts a new period. */
  ruleOf: (org_id: string) => PeriodRule;
  /**
   * Returns the cost in USD up to which use above a hard limit is accepted; null: such use is
   * rejected with 429.
   */
  overageUsdOf: (org_id: string) => number | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

export interface HardLimits {
  check: BudgetCheck;
  /** Returns true once every hard limit can be decided, and from then on. */
  isReady: () => boolean;
  /** Resolves once limits that were written apply in this process, and after `withinMs` milliseconds at the latest. */
  inForce: (org_id: string, withinMs: number) => Promise<void>;
  close: () => void;
}

/** Opens the hard limits. What organizations have used is read from the store afterwards. */
export async function openHardLimits(deps: HardLimitsDeps): Promise<HardLimits> {
  const { log, prices, partitions, overageUsdOf, now, onProblem } = deps;
  const usage = new UsageLedger();
  const windows = new RateWindows(now);
  const sweeping = setInterval(() => {
    windows.sweep();
  }, WINDOW_MS).unref();
  const accounts = new LimitedAccounts({ ...deps, windows });
  const ledger = new AccountLedger(usage, windows);
  const follower = followUsage(deps, usage, accounts);
  const sharing = new ReservationSharing({
    nc: log.nc,
    ledger,
    logEnd: () => readLogEnd(log, partitions),
    onProblem,
  });
  const gate = new BudgetGate({
    budgets: accounts,
    ledger,
    periodOf: (account) => (isRateAccount(account) ? accounts.periodOf(account) : follower.period(account)),
    refusalOf: (account) => accounts.refusalOf(account),
    overageUsdOf,
    now,
    onCrossing: (crossing) => {
      sharing.announceCrossing(crossing);
    },
  });
  sharing.onCrossing((crossing) => {
    gate.heardCrossing(crossing);
  });
  const limited = new Set<string>();
  // Only an account that can be rejected is followed here; the pipeline keeps those that warnings need.
  const unfollow = accounts.follow((account, record) => {
    if (record !== null && hasHardLimit(record)) {
      limited.add(account);
      follower.follow(account, limitedAgents(record));
    } else follower.unfollow(account);
    if (record === null) gate.forget(account);
  });
  const startup = await StartupKnowledge.begin(
    { log, partitions, prices, budgets: accounts, ledger: usage, follower, onProblem },
    new Set(limited),
  );
  const knowledge = new RateKnowledge(startup);
  const isKnown = (account: string): boolean => knowledge.isKnown(account);
  const deciders = new BudgetDeciders({
    nc: log.nc,
    sharing,
    guards: (org_id) => gate.guards(org_id),
    isKnown,
    whenKnown: (account, withinMs) => startup.whenKnown(account, withinMs),
    mayGuess: (account) => isRateAccount(account) || startup.mayGuess(account),
    admit: (org_id, uses) => gate.admit(org_id, uses),
    onLate: (questions) => {
      metrics.budgetLateAnswersTotal.inc(questions);
    },
    onProblem,
  });
  return {
    check: new BudgetCheck({ prices, gate, deciders, sharing, ledger, windows, isKnown }),
    isReady: () => startup.isReady(),
    inForce: (org_id, withinMs) => follower.whenRead(org_id, withinMs),
    close: () => {
      clearInterval(sweeping);
      startup.stop();
      unfollow();
      for (const part of [follower, deciders, sharing]) part.close();
    },
  };
}

/** Knows the rates of keys from a minute after the start on: by then this process has heard of every use. */
class RateKnowledge {
  readonly #startup: StartupKnowledge;
  readonly #known_at = performance.now() + WINDOW_MS;

  constructor(startup: StartupKnowledge) {
    this.#startup = startup;
  }

  isKnown(account: string): boolean {
    return isRateAccount(account) ? performance.now() >= this.#known_at : this.#startup.isKnown(account);
  }
}

function followUsage(
  { log, clickhouse, now, onProblem }: HardLimitsDeps,
  ledger: UsageLedger,
  accounts: LimitedAccounts,
): UsageFollower {
  return new UsageFollower({
    nc: log.nc,
    clickhouse,
    ledger,
    toPico: usdToPico,
    now,
    logBase: logBaseReader(log),
    periodOf: (account) => accounts.periodOf(account),
    onMoved: () => undefined,
    onUnread: (accounts) => {
      metrics.budgetAccountsUnread.set(accounts);
    },
    onProblem,
  });
}
