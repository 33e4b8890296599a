// The budget check: rejects events of an organization above a hard limit, and reserves what
// admitted events use until they have landed. Far from every limit it decides in memory; near one,
// or while this process does not know what the organization has used, the organization's decider
// does (deciders.ts). Other processes hear of every reservation (sharing.ts).
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
import type { ReservationSharing } from './sharing.ts';
import { type EnteringEvent, usesOf } from './uses.ts';

export interface BudgetCheckDeps {
  prices: PriceBook;
  gate: Pick<BudgetGate, 'guards' | 'check'>;
  deciders: Pick<BudgetDeciders, 'decide'>;
  sharing: Pick<ReservationSharing, 'view' | 'announce'>;
  ledger: Pick<UsageLedger, 'reserve' | 'merged'>;
  /** Returns true once this process knows what the organization has used. */
  isKnown: (org_id: string) => boolean;
}

export class BudgetCheck {
  readonly #deps: BudgetCheckDeps;

  constructor(deps: BudgetCheckDeps) {
    this.#deps = deps;
  }

  /** Decides whether the events of a request are admitted: all of them, or none. */
  decide({ org_id, eventsOf }: Pick<RequestFacts, 'org_id' | 'eventsOf'>): Decision {
    const { prices, gate, deciders, sharing, ledger, isKnown } = this.#deps;
    if (!gate.guards(org_id)) return ADMIT;
    const uses = usesOf(prices, eventsOf());
    const verdict = gate.check(org_id, uses, sharing.view(org_id, uses));
    if (verdict.kind === 'reject') return verdict;
    if (verdict.kind === 'passes' && isKnown(org_id)) return reserved(this.#reserve(org_id, uses));
    const decided = deciders.decide(org_id, ledger.merged(org_id, uses));
    return decided instanceof Promise ? { kind: 'wait', decided: decided.then(settled) } : settled(decided);
  }

  /**
   * Reserves the use of an event that the service is about to store, whatever the limits are: its
   * use is a fact already.
   * @returns null where no hard limit applies to the organization
   */
  count(org_id: string, event: EnteringEvent): UseReservation | null {
    const { gate, prices } = this.#deps;
    return gate.guards(org_id) ? this.#reserve(org_id, usesOf(prices, [event])) : null;
  }

  #reserve(org_id: string, uses: readonly AskedUse[]): UseReservation {
    const { sharing, ledger } = this.#deps;
    return sharing.announce(org_id, ledger.reserve(org_id, uses));
  }
}

const settled = (decision: BudgetDecision): Settled => (decision.kind === 'reject' ? decision : reserved(decision.use));

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
