// The use of every account behind one interface: accounts whose sums the store counts are in the usage
// ledger, rates of API keys in the windows of the last minute.
import { isRateAccount } from '../../../schemas/accounts.ts';
import { nothingUsed, type Used } from '../../../pipeline/domain/budgets/budget.ts';
import type { AskedUse, Reservation, UsageLedger } from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { RateWindows } from './rate_windows.ts';

type Counted = Pick<UsageLedger, 'used' | 'agentUsed' | 'reserve' | 'isSettled' | 'merged'>;

export class AccountLedger implements Counted {
  readonly #ledger: Counted;
  readonly #windows: RateWindows;

  constructor(ledger: Counted, windows: RateWindows) {
    this.#ledger = ledger;
    this.#windows = windows;
  }

  used(account: string): Used {
    return isRateAccount(account) ? this.#windows.used(account) : this.#ledger.used(account);
  }

  agentUsed(account: string, agent_id: string): Used {
    return isRateAccount(account) ? nothingUsed() : this.#ledger.agentUsed(account, agent_id);
  }

  isSettled(account: string): boolean {
    return isRateAccount(account) || this.#ledger.isSettled(account);
  }

  merged(account: string, uses: readonly AskedUse[]): AskedUse[] {
    return isRateAccount(account) ? [...uses] : this.#ledger.merged(account, uses);
  }

  reserve(account: string, uses: readonly AskedUse[]): Reservation {
    return (isRateAccount(account) ? this.#windows : this.#ledger).reserve(account, uses);
  }
}
