// Wires budgets into an API process: the store of limits, the accounts that are kept by the reports of landings, the gate of
// ingest, and the routes.
import { setTimeout as sleep } from 'node:timers/promises';
import * as metrics from '../../../ops/platform/metrics.ts';
import { UsageFollower } from '../../../ops/exchange/usage_follower.ts';
import { queueMail } from '../../../ops/exchange/mail_queue.ts';
import type { Sealer } from '../../../ops/platform/sealing.ts';
import { type Log, logBaseReader } from '../../../ops/platform/nats/open_log.ts';
import { INGEST_STREAM } from '../../../schemas/streams.ts';
import { freshDelivery, publishDelivery } from '../../../ops/exchange/webhook_queue.ts';
import { hasHardLimit, limitedAgents } from '../../../pipeline/domain/budgets/budget.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import { periodAt, type PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import { UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { ALERT_TARGET_ID } from '../../../schemas/records/budget.ts';
import type { ClickHouse } from '../../../sql/client/client.ts';
import type { Route } from '../../http/route.ts';
import { alertRoutes } from './alert_routes.ts';
import { countBacklog } from '../../admission/budget/backlog.ts';
import { BudgetCheck } from '../../admission/budget/check.ts';
import { StartupBarrier } from '../../admission/budget/startup_barrier.ts';
import type { BudgetsDeps } from './budgets.ts';
import { BudgetGate } from '../../admission/budget/gate.ts';
import { BudgetDeciders } from '../../admission/budget/deciders.ts';
import { budgetRoutes } from './routes.ts';
import { ReservationSharing } from '../../admission/budget/sharing.ts';
import { BudgetStore } from './store.ts';
import { type EnteringEvent, usesOf } from '../../admission/budget/uses.ts';

/** How long the answer to a change of limits waits until they hold here; with the store away they hold when it is back. */
const IN_FORCE_MS = 1000;

/** What budgets need to know of an org. */
export interface BudgetedOrg {
  name: string;
  owner: { email: string };
  plan_name: string;
  overage_budget_usd: number | null;
}

export interface OpenBudgetsDeps {
  log: Log;
  clickhouse: ClickHouse;
  /** Milliseconds since the epoch. */
  now: () => number;
  prices: PriceBook;
  /** Number of partitions of the ingest log. */
  partitions: number;
  /** When the org's budget starts over. */
  ruleOf: (org_id: string) => PeriodRule;
  /** Null for an org that is not there. */
  orgOf: (org_id: string) => BudgetedOrg | null;
  sealer: Sealer;
  /** Whether webhooks may go to this machine. */
  development: boolean;
  onProblem: (problem: string, cause: unknown) => void;
}

export interface Budgets {
  routes: Route[];
  check: BudgetCheck;
  /** Whether every hard limit can be decided: false for a while after the start, and never again once it was true. */
  isReady: () => boolean;
  close: () => void;
}

/** Resolves when every budget there is has been loaded; what was used is read after that. */
export async function openBudgets(options: OpenBudgetsDeps): Promise<Budgets> {
  const { log, clickhouse, now, prices, partitions, ruleOf, orgOf, sealer, development, onProblem } = options;
  const budgets = await BudgetStore.open(log, onProblem);
  const ledger = new UsageLedger();
  const periodOf = (org_id: string) => periodAt(ruleOf(org_id), now());
  // Reports come as soon as there is a subscription; what they say of the log is said again every second.
  let before: StartupBarrier | null = null;
  const follower = new UsageFollower({
    nc: log.nc,
    clickhouse,
    ledger,
    toPico: usdToPico,
    now,
    logBase: logBaseReader(log),
    periodOf,
    onReports: (reports) => {
      before?.heard(reports);
    },
    onMoved: () => undefined,
    onUnread: (accounts) => {
      metrics.budgetAccountsUnread.set(accounts);
    },
    onProblem,
  });
  // Only what can be refused needs an account here; who is warned is the pipeline's.
  const unwatch = budgets.follow((org_id, record) => {
    if (record !== null && hasHardLimit(record)) follower.follow(org_id, limitedAgents(record));
    else follower.unfollow(org_id);
    if (record === null) gate.forget(org_id);
  });
  const sharing = new ReservationSharing({
    nc: log.nc,
    ledger,
    onCrossing: (crossing) => {
      gate.heardCrossing(crossing);
    },
    onProblem,
  });
  const gate: BudgetGate = new BudgetGate({
    budgets,
    ledger,
    periodOf: (org_id) => follower.period(org_id),
    overageUsdOf: (org_id) => orgOf(org_id)?.overage_budget_usd ?? null,
    now,
    onCrossing: (crossing) => {
      sharing.announceCrossing(crossing);
    },
  });
  const start = await knowTheLog({ log, partitions, budgets, ledger, follower, prices, onProblem });
  before = start.before;
  const { isKnown, mayGuess } = start;
  const deciders = new BudgetDeciders({
    nc: log.nc,
    sharing,
    guards: (org_id) => gate.guards(org_id),
    isKnown,
    whenKnown: async (org_id, withinMs) => {
      await Promise.race([start.before.known.then(() => follower.whenRead(org_id, withinMs)), sleep(withinMs)]);
    },
    mayGuess,
    admit: (org_id, uses) => gate.admit(org_id, uses),
    onProblem,
  });
  const planOf = (org_id: string) => orgOf(org_id)?.plan_name ?? '';
  const deps: BudgetsDeps = {
    budgets,
    clickhouse,
    now,
    periodOf,
    planOf,
    inForce: (org_id) => follower.whenRead(org_id, IN_FORCE_MS),
  };
  const alerts = alertRoutes({
    budgets,
    sealer,
    now,
    periodOf,
    ownerOf: (org_id) => {
      const org = orgOf(org_id);
      return org === null ? null : { name: org.name, email: org.owner.email };
    },
    mail: (mail) => queueMail(log, mail),
    deliver: (org_id, { event_id, event, payload }) => {
      const target = { org_id, target_kind: 'alert' as const, target_id: ALERT_TARGET_ID };
      return publishDelivery(
        log,
        freshDelivery({ ...target, event_id, event, body: JSON.stringify(payload), created_at: now() }),
        'test',
      );
    },
    development,
  });
  return {
    routes: [...budgetRoutes(deps), ...alerts],
    check: new BudgetCheck({ prices, gate, deciders, sharing, ledger, isKnown }),
    isReady: start.isReady,
    close: () => {
      start.stop();
      unwatch();
      follower.close();
      deciders.close();
      sharing.close();
      budgets.close();
    },
  };
}

/** How far an API process that has just started can decide hard limits: it has not seen what other processes wrote to the log. */
interface StartKnowledge {
  before: StartupBarrier;
  /** Whether this process knows what the organization has used. */
  isKnown: (org_id: string) => boolean;
  /** True when the process may decide about the organization without knowing what it has used. */
  mayGuess: (org_id: string) => boolean;
  isReady: () => boolean;
  stop: () => void;
}

type StartDeps = Pick<OpenBudgetsDeps, 'log' | 'partitions' | 'prices' | 'onProblem'> & {
  budgets: BudgetStore;
  ledger: UsageLedger;
  follower: UsageFollower;
};

/**
 * Begins to count what the log holds and has not landed. The subscriptions of this process come first: it hears of what enters
 * the log from now on. A limit that is set later, of a new organization too, does not wait for this.
 */
async function knowTheLog({
  log,
  partitions,
  budgets,
  ledger,
  follower,
  prices,
  onProblem,
}: StartDeps): Promise<StartKnowledge> {
  const limited = new Set([...budgets.all()].filter(hasHardLimit).map(({ org_id }) => org_id));
  await log.nc.flush();
  const { state } = await log.jsm.streams.info(INGEST_STREAM);
  const newest = state.messages === 0 || limited.size === 0 ? 0 : state.last_seq;
  ledger.beginBacklog(newest);
  const stopped = new AbortController();
  const before = new StartupBarrier({
    newest,
    partitions,
    onKnown: () => {
      stopped.abort();
      follower.rereadAll();
    },
  });
  const counting = {
    log,
    partitions,
    newest,
    counts: (org_id: string) => limited.has(org_id),
    take: (org_id: string, events: readonly EnteringEvent[], seq: number) => {
      ledger.countLogged(org_id, usesOf(prices, events), seq);
    },
    signal: stopped.signal,
    onProblem,
  };
  if (newest > 0)
    void countBacklog(counting).then((whole) => {
      if (whole) before.counted();
    });
  const isKnown = (org_id: string): boolean =>
    follower.readAt(org_id) > -Infinity &&
    (!limited.has(org_id) || (before.knownAt !== null && follower.readAt(org_id) >= before.knownAt));
  const unknown = new Set(limited);
  return {
    before,
    isKnown,
    mayGuess: (org_id) => !limited.has(org_id) || before.mayGuess,
    isReady: () => {
      if (before.mayGuess) unknown.clear();
      for (const org_id of unknown) {
        const record = budgets.get(org_id);
        if (record === null || !hasHardLimit(record) || isKnown(org_id)) unknown.delete(org_id);
      }
      return unknown.size === 0;
    },
    stop: () => {
      stopped.abort();
    },
  };
}
