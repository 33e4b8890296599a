// What limits each account: the budget of an organization, the budget of an API key, and the rates of
// an API key. Presents all of them as budget records, so that one gate decides about all. Takes the
// stores of budgets and keys; holds nothing but records that follow from theirs.
import type { KeyAccount } from '../../../schemas/accounts.ts';
import { isRateAccount, keyAccount, keyOfAccount } from '../../../schemas/accounts.ts';
import { keyPeriodAt, periodAt, type PeriodRule } from '../../../pipeline/domain/budgets/period.ts';
import type { KeyLimits } from '../../../schemas/records/api_key.ts';
import { type BudgetRecord, type PeriodState, unlimited } from '../../../schemas/records/budget.ts';
import type { BudgetStore } from '../../control/budgets/store.ts';
import type { RateWindows } from './rate_windows.ts';

/** The limits of the API keys. */
export interface LimitedKeys {
  /** Returns the limits of a key; null for a key without any, and for one that does not exist. */
  limitsById: (org_id: string, key_id: string) => KeyLimits | null;
  /** Calls back with every key that has a budget, then with each that gets, changes or loses one. */
  followBudgets: (listener: (org_id: string, key_id: string, isBudgeted: boolean) => void) => () => void;
}

export interface LimitedAccountsDeps {
  budgets: Pick<BudgetStore, 'get' | 'state' | 'all' | 'follow'>;
  keys: LimitedKeys;
  windows: Pick<RateWindows, 'freeIn'>;
  /** Returns the rule by which the organization's budget starts a new period. */
  ruleOf: (org_id: string) => PeriodRule;
  /** Milliseconds since the epoch. */
  now: () => number;
}

/** Names of accounts that are remembered as read; beyond it all are read again. */
const NAMES_MAX = 10_000;

export class LimitedAccounts {
  readonly #deps: LimitedAccountsDeps;
  /** The key behind each account name, null for an organization or agent: every request looks names up. */
  readonly #keys = new Map<string, KeyAccount | null>();
  /** Records of each key by the kind of the account, as the gate knows records by identity. */
  readonly #records = new WeakMap<KeyLimits, Record<KeyAccount['kind'], BudgetRecord | null>>();

  constructor(deps: LimitedAccountsDeps) {
    this.#deps = deps;
  }

  /** Returns the limits of an account; null for none. */
  get(account: string): BudgetRecord | null {
    const key = this.#keyOf(account);
    if (key === null) return this.#deps.budgets.get(account);
    const limits = this.#deps.keys.limitsById(key.org_id, key.key_id);
    if (limits === null) return null;
    let records = this.#records.get(limits);
    if (records === undefined) this.#records.set(limits, (records = recordsOf(key, limits)));
    return records[key.kind];
  }

  #keyOf(account: string): KeyAccount | null {
    let key = this.#keys.get(account);
    if (key !== undefined) return key;
    key = keyOfAccount(account);
    if (this.#keys.size >= NAMES_MAX) this.#keys.clear();
    this.#keys.set(account, key);
    return key;
  }

  state(account: string, period_start: number): PeriodState | null {
    return this.#keyOf(account) === null ? this.#deps.budgets.state(account, period_start) : null;
  }

  /** Returns the current period of an account; that of a rate ends when use is below the limit again. */
  periodOf(account: string): { start: number; end: number } {
    const { keys, ruleOf, windows } = this.#deps;
    const now = this.#deps.now();
    const key = this.#keyOf(account);
    if (key === null) return periodAt(ruleOf(account), now);
    if (isRateAccount(account))
      return { start: 0, end: now + windows.freeIn(account, this.get(account)?.tokens.hard_limit ?? Infinity) };
    return keyPeriodAt(keys.limitsById(key.org_id, key.key_id)?.budget?.period ?? 'month', now);
  }

  /** Returns what an error says about a limit of a key; null for a limit of an organization or agent. */
  refusalOf(account: string): string | null {
    const key = this.#keyOf(account);
    const limits = key === null ? null : this.#deps.keys.limitsById(key.org_id, key.key_id);
    if (key === null || limits === null) return null;
    if (key.kind === 'requests')
      return `The API key may send at most ${String(limits.requests_per_minute)} requests within a minute. Retry after the number of seconds in Retry-After.`;
    if (key.kind === 'tokens')
      return `The API key may use at most ${String(limits.tokens_per_minute)} tokens within a minute. Retry after the number of seconds in Retry-After.`;
    const { resource, hard_limit, period } = limits.budget ?? { resource: '', hard_limit: 0, period: 'month' };
    return `The budget of the API key on ${resource} (${hard_limit} a ${period}) is used up. It applies until the next ${period} starts.`;
  }

  /** Calls back with every account whose use the store counts, then with each change of its limits. */
  follow(listener: (account: string, record: BudgetRecord | null) => void): () => void {
    const { budgets, keys } = this.#deps;
    const stops = [
      budgets.follow(listener),
      keys.followBudgets((org_id, key_id, isBudgeted) => {
        const account = keyAccount(org_id, key_id);
        listener(account, isBudgeted ? this.get(account) : null);
      }),
    ];
    return () => {
      for (const stop of stops) stop();
    };
  }
}

function recordsOf(
  { org_id, key_id }: KeyAccount,
  { budget, requests_per_minute, tokens_per_minute }: KeyLimits,
): Record<KeyAccount['kind'], BudgetRecord | null> {
  const limited = (limits: Partial<BudgetRecord>) => ({ ...unlimited(`${org_id} ${key_id}`), ...limits });
  const hard = (hard_limit: number) => ({ soft_limit: null, hard_limit });
  return {
    budget: budget === null ? null : limited({ [budget.resource]: hard(budget.hard_limit) }),
    requests: requests_per_minute === null ? null : limited({ tokens: hard(requests_per_minute) }),
    tokens: tokens_per_minute === null ? null : limited({ tokens: hard(tokens_per_minute) }),
  };
}
