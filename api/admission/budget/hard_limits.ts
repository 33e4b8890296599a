// The hard limits of an API process: opens what the budget check decides with. The follower keeps the accounts of
// organizations with a hard limit, the gate decides in memory, reservations are shared with the other API processes, and
// near a limit one decider decides for all.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { UsageFollower } from '../../../ops/exchange/usage_follower.ts';
import * as metrics from '../../../ops/platform/metrics.ts';
import { type Log, logBaseReader } from '../../../ops/platform/nats/open_log.ts';
import { hasHardLimit, limitedAgents } from '../../../pipeline/domain/budgets/budget.ts';
import { periodAt, type PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { BudgetStore } from '../../control/budgets/store.ts';
import { BudgetCheck } from './check.ts';
import { BudgetDeciders } from './deciders.ts';
import { BudgetGate } from './gate.ts';
import { ReservationSharing } from './sharing.ts';
import { StartupKnowledge } from './startup_knowledge.ts';

export interface HardLimitsDeps {
  log: Log;
  clickhouse: ClickHouse;
  /** Every budget; the caller closes it. */
  budgets: BudgetStore;
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
  const { log, budgets, prices, partitions, overageUsdOf, now, onProblem } = deps;
  const ledger = new UsageLedger();
  const follower = followUsage(deps, ledger);
  const sharing = new ReservationSharing({ nc: log.nc, ledger, onProblem });
  const gate = new BudgetGate({
    budgets,
    ledger,
    periodOf: (org_id) => follower.period(org_id),
    overageUsdOf,
    now,
    onCrossing: (crossing) => {
      sharing.announceCrossing(crossing);
    },
  });
  sharing.onCrossing((crossing) => {
    gate.heardCrossing(crossing);
  });
  // Only an organization that can be rejected needs an account here; the pipeline keeps those that warnings need.
  const unfollow = budgets.follow((org_id, record) => {
    if (record !== null && hasHardLimit(record)) follower.follow(org_id, limitedAgents(record));
    else follower.unfollow(org_id);
    if (record === null) gate.forget(org_id);
  });
  const limited = new Set([...budgets.all()].filter(hasHardLimit).map(({ org_id }) => org_id));
  const startup = await StartupKnowledge.begin(
    { log, partitions, prices, budgets, ledger, follower, onProblem },
    limited,
  );
  const isKnown = (org_id: string): boolean => startup.isKnown(org_id);
  const deciders = new BudgetDeciders({
    nc: log.nc,
    sharing,
    guards: (org_id) => gate.guards(org_id),
    isKnown,
    whenKnown: (org_id, withinMs) => startup.whenKnown(org_id, withinMs),
    mayGuess: (org_id) => startup.mayGuess(org_id),
    admit: (org_id, uses) => gate.admit(org_id, uses),
    onProblem,
  });
  return {
    check: new BudgetCheck({ prices, gate, deciders, sharing, ledger, isKnown }),
    isReady: () => startup.isReady(),
    inForce: (org_id, withinMs) => follower.whenRead(org_id, withinMs),
    close: () => {
      startup.stop();
      unfollow();
      for (const part of [follower, deciders, sharing]) part.close();
    },
  };
}

function followUsage({ log, clickhouse, ruleOf, now, onProblem }: HardLimitsDeps, ledger: UsageLedger): UsageFollower {
  return new UsageFollower({
    nc: log.nc,
    clickhouse,
    ledger,
    toPico: usdToPico,
    now,
    logBase: logBaseReader(log),
    periodOf: (org_id) => periodAt(ruleOf(org_id), now()),
    onMoved: () => undefined,
    onUnread: (accounts) => {
      metrics.budgetAccountsUnread.set(accounts);
    },
    onProblem,
  });
}
