// The checks of use: reject events above a hard limit of the organization, or above the budget or the
// rates of the API key, and reserve what admitted events use until they have landed. Far from every
// limit they decide in memory; near one, or while this process does not know what an account has
// used, the account's decider does (deciders.ts). Other processes hear of every reservation
// (sharing.ts).
import { keyAccount, rateAccount } from '../../../schemas/accounts.ts';
import type {
  AskedUse,
  Reservation as UseReservation,
  UsageLedger,
} from '../../../pipeline/domain/budgets/usage_ledger.ts';
import type { PriceBook } from '../../../pipeline/domain/pricing/pricing.ts';
import type { RequestFacts } from '../check.ts';
import { ADMIT, admitWith, type Decision, type Settled } from '../decision.ts';
import type { BudgetDeciders } from './deciders.ts';
import type { BudgetDecision, BudgetGate } from './gate.ts';
import type { RateWindows } from './rate_windows.ts';
import type { ReservationSharing } from './sharing.ts';
import { type EnteringEvent, type EventUse, eventUsesOf } from './uses.ts';

export interface BudgetCheckDeps {
  prices: PriceBook;
  gate: Pick<BudgetGate, 'guards' | 'check'>;
  deciders: Pick<BudgetDeciders, 'decide'>;
  sharing: Pick<ReservationSharing, 'view' | 'announce'>;
  ledger: Pick<UsageLedger, 'reserve' | 'merged'>;
  windows: Pick<RateWindows, 'useNow'>;
  /** Returns true once this process knows what the account has used. */
  isKnown: (account: string) => boolean;
}

type Asked = Pick<RequestFacts, 'org_id' | 'eventsOf'> & Partial<Pick<RequestFacts, 'key' | 'backfill' | 'uses'>>;

/** Ids of an API key. */
interface KeyIds {
  org_id: string;
  key_id: string;
}

export class BudgetCheck {
  readonly #deps: BudgetCheckDeps;

  constructor(deps: BudgetCheckDeps) {
    this.#deps = deps;
  }

  /** Decides by the budget of the organization whether the events are admitted: all of them, or none. */
  decide(asked: Asked): Decision {
    return asked.backfill === true ? ADMIT : this.#ask(asked.org_id, () => this.usesOf(asked).map(({ use }) => use));
  }

  /** Decides by the budget of the API key. */
  decideKey(asked: Asked): Decision {
    const { key } = asked;
    if (key?.limits?.budget == null || asked.backfill === true) return ADMIT;
    return this.#ask(keyAccount(key.org_id, key.key_id), () => this.usesOf(asked).map(({ use }) => use));
  }

  /** Decides by the tokens that the API key may use within a minute. */
  decideKeyTokens(asked: Asked): Decision {
    const { key } = asked;
    if (key?.limits?.tokens_per_minute == null) return ADMIT;
    return this.#ask(rateAccount('tokens', key.org_id, key.key_id), () => [this.#tokensNow(this.usesOf(asked))]);
  }

  /** Decides by the requests that the API key may send within a minute; what is admitted stays counted. */
  decideKeyRequest({ org_id, key_id }: KeyIds): Decision {
    const decision = this.#ask(rateAccount('requests', org_id, key_id), () => [this.#deps.windows.useNow(1)]);
    return decision.kind === 'wait' ? { kind: 'wait', decided: decision.decided.then(kept) } : kept(decision);
  }

  /** Returns the use and the model of each event of a request. */
  usesOf(asked: Asked): readonly EventUse[] {
    return (asked.uses ??= eventUsesOf(this.#deps.prices, asked.eventsOf()));
  }

  /**
   * Reserves the use of an event that the service is about to store, whatever the limits are: its
   * use is a fact already.
   * @returns null where no limit applies to it
   */
  count(org_id: string, event: EnteringEvent): UseReservation | null {
    const { gate, prices, sharing, ledger } = this.#deps;
    const { key_id = '' } = event.event;
    const [budget, rate] = [keyAccount(org_id, key_id), rateAccount('tokens', org_id, key_id)];
    const accounts = (key_id === '' ? [org_id] : [org_id, budget, rate]).filter((account) => gate.guards(account));
    if (accounts.length === 0) return null;
    const uses = eventUsesOf(prices, [event]);
    const reservations = accounts.map((account) => {
      const own = account === rate ? [this.#tokensNow(uses)] : uses.map(({ use }) => use);
      return sharing.announce(account, ledger.reserve(account, own));
    });
    return {
      uses: uses.map(({ use }) => use),
      confirm: (positions) => {
        for (const reservation of reservations) reservation.confirm(positions);
      },
      cancel: () => {
        for (const reservation of reservations) reservation.cancel();
      },
    };
  }

  #tokensNow(uses: readonly EventUse[]): AskedUse {
    return this.#deps.windows.useNow(uses.reduce((sum, { use }) => sum + use.tokens, 0));
  }

  #ask(account: string, usesOf: () => readonly AskedUse[]): Decision {
    const { gate, deciders, sharing, ledger, isKnown } = this.#deps;
    if (!gate.guards(account)) return ADMIT;
    const uses = usesOf();
    const verdict = gate.check(account, uses, sharing.view(account, uses));
    if (verdict.kind === 'reject') return verdict;
    if (verdict.kind === 'passes' && isKnown(account))
      return reserved(sharing.announce(account, ledger.reserve(account, uses)));
    const decided = deciders.decide(account, ledger.merged(account, uses));
    return decided instanceof Promise ? { kind: 'wait', decided: decided.then(settled) } : settled(decided);
  }
}

const settled = (decision: BudgetDecision): Settled => (decision.kind === 'reject' ? decision : reserved(decision.use));

const NO_POSITIONS: ReadonlyMap<number, number> = new Map();

/** Keeps what is reserved, however the request ends. */
function kept(decision: Settled): Settled {
  if (decision.kind === 'reject') return decision;
  decision.reservation?.confirm?.(NO_POSITIONS);
  return ADMIT;
}

/** Exactly one of confirm and cancel is called on the reservation of use. */
function reserved(use: UseReservation): Settled {
  let open = true;
  return admitWith({
    confirm: (positions) => {
      if (!open) return;
      open = false;
      use.confirm(positions);
    },
    release: () => {
      if (!open) return;
      open = false;
      use.cancel();
    },
  });
}
