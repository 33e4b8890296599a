// What is let in: bounds on the bytes and events that are in flight (being read, checked or confirmed), for the process and
// for each org, so that one org's flood neither fills the memory nor delays another's events. Who has more than its share of what
// the pipeline has still to land (shares.ts) is not let in, and who sends much at once waits its turn (fair_turns.ts).
import type { OrgCredential } from '../http/credential.ts';
import { ApiError } from '../http/errors.ts';
import { FairTurns } from './fair_turns.ts';
import type { OutgoingEvent } from '../intake/ingest/publisher.ts';
import type { Shares } from './backlog_shares.ts';

/** Of all orgs together. */
export const TOTAL_BYTES_MAX = 128 * 1024 * 1024;
/** Of one org: less than the whole, so that another always finds room. */
export const ORG_BYTES_MAX = 48 * 1024 * 1024;
const TOTAL_EVENTS_MAX = 200_000;
export const ORG_EVENTS_MAX = 80_000;
const RETRY_AFTER_SECONDS = 1;

/** What a budget let in, until it has landed. Exactly one of the two has to be called. */
interface BudgetHold {
  /** The log has it: by partition, the JetStream sequence. */
  confirm: (positions: ReadonlyMap<number, number>) => void;
  cancel: () => void;
}

/** The budgets of orgs, as ingest asks them. */
export interface BudgetCheck {
  /** Whether the org has a limit that can refuse. */
  guards: (org_id: string) => boolean;
  /** A promise where another process has to be asked. @throws ApiError (or rejects with it) rate_limited, payment_required */
  admit: (org_id: string, events: readonly OutgoingEvent[]) => BudgetHold | Promise<BudgetHold>;
}

interface InFlight {
  requests: number;
  bytes: number;
  events: number;
}

/** What one request holds of the bounds; give it back by release, once. */
export interface Hold {
  /** Holds more bytes; an error when there is no room for them. */
  grow: (bytes: number) => ApiError | null;
  /** Holds events, once they are counted; an error when there is no room for them. */
  admit: (events: number) => ApiError | null;
  /** Checks a body of so many bytes, at once or when it is the org's turn. Rejects with ApiError rate_limited when that takes too long. */
  inTurn: <T>(bytes: number, check: () => T) => T | Promise<T>;
  release: () => void;
}

export class Admission {
  readonly #total: InFlight = { requests: 0, bytes: 0, events: 0 };
  readonly #orgs = new Map<string, InFlight>();
  readonly #turns = new FairTurns();
  readonly #shares: Pick<Shares, 'refusal'> | null;

  /** @param shares null: what waits in the pipeline refuses nobody */
  constructor(shares: Pick<Shares, 'refusal'> | null = null) {
    this.#shares = shares;
  }

  /** Begins a request. @throws ApiError rate_limited for who is beyond its share of the pipeline */
  open(credential: OrgCredential): Hold {
    const refusal = this.#shares?.refusal(credential.org_id) ?? null;
    if (refusal !== null) throw refusal;
    const total = this.#total;
    const org = this.#orgs.get(credential.org_id) ?? { requests: 0, bytes: 0, events: 0 };
    this.#orgs.set(credential.org_id, org);
    org.requests++;
    total.requests++;
    let bytesHeld = 0;
    let eventsHeld = 0;
    return {
      grow: (bytes) => {
        if (org.bytes + bytes > ORG_BYTES_MAX || total.bytes + bytes > TOTAL_BYTES_MAX) return tooMuch('bytes');
        bytesHeld += bytes;
        org.bytes += bytes;
        total.bytes += bytes;
        return null;
      },
      admit: (events) => {
        if (org.events + events > ORG_EVENTS_MAX || total.events + events > TOTAL_EVENTS_MAX) return tooMuch('events');
        eventsHeld += events;
        org.events += events;
        total.events += events;
        return null;
      },
      inTurn: (bytes, check) => this.#turns.run(credential.org_id, bytes, check),
      release: () => {
        for (const count of [org, total]) {
          count.requests--;
          count.bytes -= bytesHeld;
          count.events -= eventsHeld;
        }
        bytesHeld = 0;
        eventsHeld = 0;
        if (org.requests === 0) this.#orgs.delete(credential.org_id);
      },
    };
  }
}

function tooMuch(of: 'bytes' | 'events'): ApiError {
  return new ApiError('rate_limited', `Too many ${of} are in flight. Send them again shortly.`, {
    headers: { 'Retry-After': String(RETRY_AFTER_SECONDS) },
  });
}
