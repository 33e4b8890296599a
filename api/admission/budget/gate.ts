// The gate of ingest: lets a request in while no hard limit of its org or agents is reached, and counts what it lets in until
// it has landed. In: the events of one request. Out: a reservation, or why it is refused. Everything is decided in memory,
// in one turn of the event loop: of any number of senders at once, the one that crosses a limit is the last one let in. The
// gate also says when a limit is so near that this process may not decide alone.
import { type Blocked, blockedBy, hasHardLimit, limitsOfAgent } from '../../../pipeline/domain/budgets/budget.ts';
import { isNear, isNearAny, type View } from '../../../pipeline/domain/budgets/margin.ts';
import { usdToPico } from '../../../pipeline/domain/pricing/money.ts';
import type {
  AskedUse,
  Reservation as UseReservation,
  UsageLedger,
} from '../../../pipeline/domain/budgets/usage_ledger.ts';
import { agentScope, type BudgetRecord } from '../../../schemas/records/budget.ts';
import type { BudgetStore } from '../../control/budgets/store.ts';
import { type Reject, reject } from '../decision.ts';

/** Orgs whose first crossing is remembered until KV shows it; with more, the oldest is looked up again. */
const CROSSINGS_MAX = 10_000;

export interface GateDeps {
  budgets: Pick<BudgetStore, 'get' | 'state'>;
  ledger: Pick<UsageLedger, 'used' | 'agentTokens' | 'reserve' | 'isSettled'>;
  /** The org's current period, milliseconds. */
  periodOf: (org_id: string) => { start: number; end: number };
  /** What use past a hard limit may cost the org; null: nothing, it is refused with 429. */
  overageUsdOf: (org_id: string) => number | null;
  now: () => number;
  /** Told of each limit that an org with an overage budget is first seen beyond here. */
  onCrossing: (crossing: Crossing) => void;
}

/** An org's cost when a limit was first seen reached. */
export interface Crossing {
  org_id: string;
  /** First instant of the period, milliseconds. */
  period_start: number;
  scope: string;
  hard_limit: number;
  cost_pico_usd: bigint;
}

/** Whether events pass every hard limit. near: they do, but one process has to decide for all. */
export type BudgetVerdict = { kind: 'passes' } | { kind: 'near' } | Reject;

/** What the process that decides makes of events: their use is reserved, or they are rejected. */
export type BudgetDecision = { kind: 'admit'; use: UseReservation } | Reject;

const PASSES: BudgetVerdict = Object.freeze({ kind: 'passes' });
const NEAR: BudgetVerdict = Object.freeze({ kind: 'near' });

const keyOf = ({ org_id, period_start, scope, hard_limit }: Omit<Crossing, 'cost_pico_usd'>): string =>
  `${org_id} ${String(period_start)} ${String(hard_limit)} ${scope}`;

export class BudgetGate {
  readonly #deps: GateDeps;
  /** By org, period and scope: the org's cost when the limit was first seen reached here, pico-USD. */
  readonly #crossings = new Map<string, bigint>();
  readonly #guarded = new WeakMap<BudgetRecord, boolean>();

  constructor(deps: GateDeps) {
    this.#deps = deps;
  }

  /** Whether the org has a hard limit at all: only then does what its events use have to be known. */
  guards(org_id: string): boolean {
    const record = this.#deps.budgets.get(org_id);
    if (record === null) return false;
    // Asked for every request, and a record may hold many agents.
    let guarded = this.#guarded.get(record);
    if (guarded === undefined) this.#guarded.set(record, (guarded = hasHardLimit(record)));
    return guarded;
  }

  /** Whether what the org has used is known here. */
  isSettled(org_id: string): boolean {
    return this.#deps.ledger.isSettled(org_id);
  }

  /** Reserves what the events of one request use, unless a hard limit rejects them. */
  admit(org_id: string, uses: readonly AskedUse[]): BudgetDecision {
    const verdict = this.check(org_id, uses, null);
    if (verdict.kind === 'reject') return verdict;
    return { kind: 'admit', use: this.#deps.ledger.reserve(org_id, uses) };
  }

  /**
   * Returns whether the events of one request pass every hard limit, and whether they come so near to one that one process has to
   * decide for all. Reserves nothing.
   * @param view how far this process's knowledge reaches; null where it is the process that decides
   */
  check(org_id: string, uses: readonly AskedUse[], view: View | null): BudgetVerdict {
    const { budgets, ledger } = this.#deps;
    const record = budgets.get(org_id);
    if (record === null) return PASSES;
    const period = this.#deps.periodOf(org_id);
    const used = ledger.used(org_id);
    const agentTokens = (agent_id: string): number => ledger.agentTokens(org_id, agent_id);
    let near = false;
    for (const agent_id of new Set(uses.map((use) => use.agent_id))) {
      const blocked =
        blockedBy(record, agent_id, used, agentTokens) ?? this.#remembered(record, agent_id, period.start);
      if (blocked === null) {
        near ||= view !== null && isNearAny(record, agent_id, used, agentTokens, view);
        continue;
      }
      const verdict = this.#overage(org_id, blocked, { period, cost: used.cost_pico_usd, view });
      if (verdict.kind === 'reject') return verdict;
      if (verdict.kind === 'near') near = true;
    }
    return near ? NEAR : PASSES;
  }

  /** Until the store has told what was used (a start while it is away), a limit that was reached stays reached. */
  #remembered(record: BudgetRecord, agent_id: string, periodStart: number): Blocked | null {
    if (this.#deps.ledger.isSettled(record.org_id)) return null;
    const crossings = this.#deps.budgets.state(record.org_id, periodStart)?.crossings ?? {};
    const own = limitsOfAgent(record, agent_id);
    const scopes: Blocked[] = [
      own === null
        ? { scope: 'tokens', resource: 'tokens', agent_id: null, hard_limit: record.tokens.hard_limit ?? Infinity }
        : { scope: agentScope(agent_id), resource: 'tokens', agent_id, hard_limit: own.hard_limit ?? Infinity },
      {
        scope: 'storage_mb',
        resource: 'storage_mb',
        agent_id: null,
        hard_limit: record.storage_mb.hard_limit ?? Infinity,
      },
      {
        scope: 'sandbox_seconds',
        resource: 'sandbox_seconds',
        agent_id: null,
        hard_limit: record.sandbox_seconds.hard_limit ?? Infinity,
      },
    ];
    return scopes.find(({ scope, hard_limit }) => (crossings[scope]?.hard_limit ?? -Infinity) >= hard_limit) ?? null;
  }

  /** Another process has seen the org beyond a limit. */
  heardCrossing(crossing: Crossing): void {
    const known = this.#crossings.get(keyOf(crossing));
    if (known === undefined || crossing.cost_pico_usd < known) this.#remember(keyOf(crossing), crossing.cost_pico_usd);
  }

  /** Returns whether the overage budget of the organization admits what is above a hard limit. */
  #overage(
    org_id: string,
    blocked: Blocked,
    { period, cost, view }: { period: { start: number; end: number }; cost: bigint; view: View | null },
  ): BudgetVerdict {
    const overage = this.#deps.overageUsdOf(org_id);
    const retry_after = Math.max(1, Math.ceil((period.end - this.#deps.now()) / 1000));
    const headers = quotaHeaders(blocked);
    const whose = blocked.agent_id === null ? 'of the org' : `of the agent ${blocked.agent_id}`;
    const what = `The hard limit ${whose} on ${blocked.resource} (${String(blocked.hard_limit)}) is reached`;
    if (overage === null)
      return reject('rate_limited', `${what}; it starts over with the next period.`, retry_after, { headers });
    const spent = cost - this.#costAtCrossing(org_id, blocked, period.start, cost);
    const budget = usdToPico(overage);
    if (overage > 0 && spent < budget) {
      const near = view !== null && isNear(Number(budget), Number(spent), Number(view.burst.cost_pico_usd), view);
      return near ? NEAR : PASSES;
    }
    const detail = `${what}, and the overage budget of ${String(overage)} USD is spent.`;
    return reject('payment_required', detail, retry_after, { headers });
  }

  /**
   * The org's cost when the limit was reached: the least of what was written down, what it is at the first refusal seen
   * here, and what another process has told. The first is of all that had landed when it was noticed, the others of all that
   * a process had let in.
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

  /** Forgets which limits of an org were seen reached. */
  forget(org_id: string): void {
    for (const key of this.#crossings.keys()) if (key.startsWith(`${org_id} `)) this.#crossings.delete(key);
  }

  #remember(key: string, cost_pico_usd: bigint): void {
    if (this.#crossings.size >= CROSSINGS_MAX) this.#crossings.delete(this.#crossings.keys().next().value ?? '');
    this.#crossings.set(key, cost_pico_usd);
  }
}

/** X-Quota-Tokens-Status is on every rejection by a budget, as clients look for it; the resource that is used up has a header of its own. */
function quotaHeaders({ resource }: Blocked): Record<string, string> {
  const name = resource
    .split('_')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('-');
  return { 'X-Quota-Tokens-Status': 'hard_exceeded', [`X-Quota-${name}-Status`]: 'hard_exceeded' };
}
