// Decides by what one process knows whether a hard limit of the organization or of an agent rejects
// events. An account is that of an organization, or of a limit of an API key (limited_accounts.ts).
// Takes the use of one request; returns a reservation, a rejection, or that a limit is so
// near that this process may not decide alone. Everything is decided in memory in one turn of the
// event loop: of any number of concurrent requests, the one that crosses a limit is the last one
// admitted.
import {
  type Blocked,
  blockedBy,
  hardLimitsFor,
  hasHardLimit,
  type Used,
} from '../../../pipeline/domain/budgets/budget.ts';
import { isRateAccount } from '../../../schemas/accounts.ts';
import { isNear, isNearAny, type View } from '../../../pipeline/domain/budgets/margin.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type {
  AskedUse,
  Reservation as UseReservation,
  UsageLedger,
} from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { BudgetRecord } from '../../../schemas/records/budget.ts';
import type { BudgetStore } from '../../control/budgets/store.ts';
import { type Reject, reject } from '../decision.ts';

/**
 * Maximum number of crossings remembered until KV shows them. Beyond it the oldest is looked up
 * again.
 */
const CROSSINGS_MAX = 10_000;

export interface GateDeps {
  budgets: Pick<BudgetStore, 'get' | 'state'>;
  ledger: Pick<UsageLedger, 'used' | 'agentUsed' | 'reserve' | 'isSettled'>;
  /** Returns the account's current period, milliseconds. */
  periodOf: (org_id: string) => { start: number; end: number };
  /** Returns the error text for the limit of an API key; null for any other account. */
  refusalOf?: (account: string) => string | null;
  /**
   * Returns the cost in USD that use above a hard limit may have; null: none, the request is
   * rejected with 429.
   */
  overageUsdOf: (org_id: string) => number | null;
  now: () => number;
  /** Called when this process first sees an organization with an overage budget above a limit. */
  onCrossing: (crossing: Crossing) => void;
}

/** The organization's cost when a limit was first seen reached. */
export interface Crossing {
  org_id: string;
  /** First instant of the period, milliseconds. */
  period_start: number;
  scope: string;
  hard_limit: number;
  cost_pico_usd: bigint;
}

/** The verdict of one process. near: the events pass, but one process has to decide for all. */
export type BudgetVerdict = { kind: 'passes' } | { kind: 'near' } | Reject;

/** The decision of the process that decides: the use is reserved, or the events are rejected. */
export type BudgetDecision = { kind: 'admit'; use: UseReservation } | Reject;

const PASSES: BudgetVerdict = Object.freeze({ kind: 'passes' });
const NEAR: BudgetVerdict = Object.freeze({ kind: 'near' });

const keyOf = ({ org_id, period_start, scope, hard_limit }: Omit<Crossing, 'cost_pico_usd'>): string =>
  `${org_id} ${period_start} ${hard_limit} ${scope}`;

export class BudgetGate {
  readonly #deps: GateDeps;
  /**
   * Cost of the organization when this process first saw a limit reached, pico-USD, by
   * organization, period, limit and scope.
   */
  readonly #crossings = new Map<string, bigint>();
  readonly #guarded = new WeakMap<BudgetRecord, boolean>();

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /**
   * Returns true if the organization has a hard limit: only then is the use of its events computed.
   */
  guards(org_id: string): boolean {
    const record = this.#deps.budgets.get(org_id);
    if (record === null) return false;
    // Every request asks, and a record may hold many agents.
    let guarded = this.#guarded.get(record);
    if (guarded === undefined) this.#guarded.set(record, (guarded = hasHardLimit(record)));
    return guarded;
  }

  /** Returns true once this process knows what the organization has used. */
  isSettled(org_id: string): boolean {
    return this.#deps.ledger.isSettled(org_id);
  }

  /** Reserves the use of one request, unless a hard limit rejects it. */
  admit(org_id: string, uses: readonly AskedUse[]): BudgetDecision {
    const verdict = this.check(org_id, uses, null);
    if (verdict.kind === 'reject') return verdict;
    return { kind: 'admit', use: this.#deps.ledger.reserve(org_id, uses) };
  }

  /**
   * Decides whether the use of one request passes every hard limit, and whether it comes so near to
   * one that one process has to decide for all. Reserves nothing.
   * @param view how far this process's knowledge reaches; null where this process is the decider
   */
  check(org_id: string, uses: readonly AskedUse[], view: View | null): BudgetVerdict {
    const { budgets, ledger } = this.#deps;
    const record = budgets.get(org_id);
    if (record === null) return PASSES;
    const period = this.#deps.periodOf(org_id);
    const used = ledger.used(org_id);
    const agentUsed = (agent_id: string): Used => ledger.agentUsed(org_id, agent_id);
    let near = false;
    for (const agent_id of new Set(uses.map((use) => use.agent_id))) {
      const blocked = blockedBy(record, agent_id, used, agentUsed) ?? this.#remembered(record, agent_id, period.start);
      if (blocked === null) {
        near ||= view !== null && isNearAny(record, agent_id, used, agentUsed, view);
        continue;
      }
      const verdict = this.#overage(org_id, blocked, { period, cost: used.cost_pico_usd, view });
      if (verdict.kind === 'reject') return verdict;
      if (verdict.kind === 'near') near = true;
    }
    return near ? NEAR : PASSES;
  }

  /**
   * Returns a limit that was recorded as reached. Until the use is known (ClickHouse is away since
   * the start), such a limit stays reached.
   */
  #remembered(record: BudgetRecord, agent_id: string, periodStart: number): Blocked | null {
    if (this.#deps.ledger.isSettled(record.org_id)) return null;
    const crossings = this.#deps.budgets.state(record.org_id, periodStart)?.crossings ?? {};
    const isCrossed = ({ scope, hard_limit }: Blocked): boolean =>
      (crossings[scope]?.hard_limit ?? -Infinity) >= hard_limit;
    return hardLimitsFor(record, agent_id).find(isCrossed) ?? null;
  }

  /** Takes a crossing that another process has seen. */
  heardCrossing(crossing: Crossing): void {
    const known = this.#crossings.get(keyOf(crossing));
    if (known === undefined || crossing.cost_pico_usd < known) this.#remember(keyOf(crossing), crossing.cost_pico_usd);
  }

  /** Decides by the overage budget about use above a hard limit. */
  #overage(
    org_id: string,
    blocked: Blocked,
    { period, cost, view }: { period: { start: number; end: number }; cost: bigint; view: View | null },
  ): BudgetVerdict {
    const overage = this.#deps.overageUsdOf(org_id);
    const retry_after = Math.max(1, Math.ceil((period.end - this.#deps.now()) / 1000));
    const headers = quotaHeaders(blocked);
    const whose = blocked.agent_id === null ? 'of the organization' : `of the agent ${blocked.agent_id}`;
    const what = `The hard limit ${whose} on ${blocked.resource} (${blocked.hard_limit}) is reached`;
    const ofKey = this.#deps.refusalOf?.(org_id) ?? null;
    if (ofKey !== null)
      return reject('rate_limited', ofKey, retry_after, { headers: isRateAccount(org_id) ? {} : headers });
    if (overage === null)
      return reject('rate_limited', `${what}. It applies until the next period starts.`, retry_after, { headers });
    const spent = cost - this.#costAtCrossing(org_id, blocked, period.start, cost);
    const budget = usdToPico(overage);
    if (overage > 0 && spent < budget) {
      const near = view !== null && isNear(Number(budget), Number(spent), Number(view.burst.cost_pico_usd), view);
      return near ? NEAR : PASSES;
    }
    const detail = `${what}, and the overage budget of ${overage} USD is spent.`;
    return reject('payment_required', detail, retry_after, { headers });
  }

  /**
   * Returns the organization's cost when the limit was reached: the least of the recorded cost, the
   * cost at the first rejection seen here, and the cost announced by another process. The recorded
   * cost counts what had landed when it was noticed, the others what a process had admitted.
   */
  #costAtCrossing(org_id: string, { scope, hard_limit }: Blocked, period_start: number, cost: bigint): bigint {
    const state = this.#deps.budgets.state(org_id, period_start)?.crossings[scope];
    const written = state?.hard_limit === hard_limit ? usdToPico(state.cost_usd) : null;
    const where = { org_id, period_start, scope, hard_limit };
    const key = keyOf(where);
    const known = this.#crossings.get(key);
    const least = [written, known ?? null].reduce((a, b) => (a === null || (b !== null && b < a) ? b : a)) ?? cost;
    if (known === undefined) {
      this.#remember(key, least);
      this.#deps.onCrossing({ ...where, cost_pico_usd: least });
    }
    return least;
  }

  /** Forgets the crossings of an organization. */
  forget(org_id: string): void {
    for (const key of this.#crossings.keys()) if (key.startsWith(`${org_id} `)) this.#crossings.delete(key);
  }

  #remember(key: string, cost_pico_usd: bigint): void {
    if (this.#crossings.size >= CROSSINGS_MAX) this.#crossings.delete(this.#crossings.keys().next().value ?? '');
    this.#crossings.set(key, cost_pico_usd);
  }
}

/**
 * Returns the headers of a rejection by a budget: X-Quota-Tokens-Status, which clients look for,
 * and the header of the resource that is used up.
 */
function quotaHeaders({ resource }: Blocked): Record<string, string> {
  const name = resource
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('-');
  return { 'X-Quota-Tokens-Status': 'hard_exceeded', [`X-Quota-${name}-Status`]: 'hard_exceeded' };
}
