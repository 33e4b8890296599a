// Admission: the ordered list of checks that a request has to pass before its events are stored or
// its model is called. A check of this list decides every 429 and 402 of the intakes, except those
// of a full ingest log (api/intake/ingest/publisher.ts) and of Idempotency-Keys
// (api/http/keyed_store.ts). admission_request.ts takes a request through the list and turns the
// first rejection into an error.
import type { OrgSlots } from '../http/org_slots.ts';
import type { RateLimits } from '../http/rate_limit.ts';
import { AdmissionRequest, type HeaderSink, type Steps, stepsOf } from './admission_request.ts';
import type { BacklogQueue } from './backlog_queue.ts';
import type { BudgetCheck } from './budget/check.ts';
import { checkCalls, checkProcessCalls } from './calls.ts';
import type { Check, Intake, RequestFacts } from './check.ts';
import { ADMIT, type Decision } from './decision.ts';
import { checkDisk } from './disk.ts';
import type { FairTurns } from './fair_turns.ts';
import { InFlight } from './in_flight.ts';
import { checkModels } from './key_models.ts';
import { checkExists } from './organization.ts';
import { checkEventRate, checkFailure, checkRequestRate } from './rate/checks.ts';

/** The state that the checks consult. */
export interface AdmissionParts {
  limits: RateLimits;
  /** Calls through the gateway that are in progress in this process. */
  calls: { readonly size: number };
  /** Counts the same calls by organization. */
  slots: Pick<OrgSlots, 'take'>;
  backlog: Pick<BacklogQueue, 'decide'>;
  turns: Pick<FairTurns, 'decide' | 'timed'>;
  disk: { readonly low: boolean };
  isDeleted: (org_id: string) => boolean;
  budgets: Pick<BudgetCheck, 'decide'>;
  /** Limits of the API key that sent a request. */
  keys: Pick<BudgetCheck, 'decideKey' | 'decideKeyTokens' | 'decideKeyRequest' | 'usesOf'>;
  /** Called with the name of the check that rejected a request. */
  onReject?: (check: string) => void;
}

const CALLS: readonly Intake[] = ['gateway'];
const EVENTS: readonly Intake[] = ['ingest', 'app', 'otlp'];
const CHARGED: readonly Intake[] = ['ingest', 'otlp', 'gateway'];
const STORED: readonly Intake[] = [...EVENTS, 'record'];
const RECORDED: readonly Intake[] = [...STORED, 'record_preflight'];
const METERED: readonly Intake[] = [...RECORDED, 'gateway'];
/** Requests of callers, who may use a key with limits. */
const KEYED: readonly Intake[] = [...EVENTS, ...CALLS];

/**
 * Returns every check in the order in which requests meet them. A request meets the checks of its
 * intake.
 */
export function checksOf(parts: AdmissionParts): readonly Check[] {
  const { limits, calls, slots, backlog, turns, disk, isDeleted, budgets, keys } = parts;
  const events = new InFlight();
  // The bodies of calls are counted apart: calls that last for minutes take no room from ingest.
  const bodies = new InFlight();
  return [
    { phase: 'arrived', name: 'process_calls', intakes: CALLS, decide: () => checkProcessCalls(calls) },
    { phase: 'identified', name: 'request_rate', intakes: CHARGED, decide: (asked) => checkRequestRate(limits, asked) },
    { phase: 'validated', name: 'organization_calls', intakes: CALLS, decide: (asked) => checkCalls(slots, asked) },
    { phase: 'validated', name: 'backlog_share', intakes: EVENTS, decide: (asked) => backlog.decide(asked) },
    { phase: 'reading', name: 'bytes_in_flight', intakes: EVENTS, decide: (asked) => events.reserveBytes(asked) },
    { phase: 'reading', name: 'bytes_in_flight', intakes: CALLS, decide: (asked) => bodies.reserveBytes(asked) },
    { phase: 'parsing', name: 'key_requests', intakes: EVENTS, decide: (asked) => checkKeyRequest(keys, asked) },
    { phase: 'parsing', name: 'turn', intakes: EVENTS, decide: (asked) => turns.decide(asked) },
    { phase: 'parsed', name: 'events_in_flight', intakes: EVENTS, decide: (asked) => events.reserveEvents(asked) },
    { phase: 'parsed', name: 'event_rate', intakes: ['app'], decide: (asked) => checkEventRate(limits, asked) },
    { phase: 'committing', name: 'disk', intakes: RECORDED, decide: () => checkDisk(disk) },
    { phase: 'committing', name: 'organization', intakes: STORED, decide: (asked) => checkExists(isDeleted, asked) },
    { phase: 'committing', name: 'key_models', intakes: KEYED, decide: (asked) => checkModels(keys, asked) },
    { phase: 'committing', name: 'key_requests', intakes: CALLS, decide: (asked) => checkKeyRequest(keys, asked) },
    { phase: 'committing', name: 'key_tokens', intakes: KEYED, decide: (asked) => keys.decideKeyTokens(asked) },
    { phase: 'committing', name: 'key_budget', intakes: KEYED, decide: (asked) => keys.decideKey(asked) },
    { phase: 'committing', name: 'budget', intakes: METERED, decide: (asked) => budgets.decide(asked) },
    { phase: 'failed', name: 'failed_event_rate', intakes: ['app'], decide: (asked) => checkFailure(limits, asked) },
  ];
}

/** Charges one request to the rate of the key with which it was sent. */
function checkKeyRequest(keys: Pick<BudgetCheck, 'decideKeyRequest'>, { key }: RequestFacts): Decision {
  return key?.limits?.requests_per_minute == null ? ADMIT : keys.decideKeyRequest(key);
}

/** Takes the requests of one API process through the checks. */
export class Admission {
  readonly #parts: AdmissionParts;
  readonly #steps: Readonly<Record<Intake, Steps>>;

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    const checks = checksOf(parts);
    const steps = (intake: Intake): Steps => stepsOf(checks, intake);
    this.#steps = {
      ingest: steps('ingest'),
      app: steps('app'),
      otlp: steps('otlp'),
      gateway: steps('gateway'),
      record: steps('record'),
      record_preflight: steps('record_preflight'),
    };
  }

  /**
   * Begins a request, which has to be released at its end.
   * @param header takes the headers that checks add to the response
   */
  begin(intake: Intake, header: HeaderSink = () => undefined): AdmissionRequest {
    const { turns, onReject } = this.#parts;
    return new AdmissionRequest({ intake, steps: this.#steps[intake], turns, header, onReject });
  }
}
