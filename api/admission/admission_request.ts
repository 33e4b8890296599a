// One request on its way through the list of checks (admission.ts). Takes what becomes known of it
// phase by phase; throws the error of the first check that rejects, after which no further check is
// asked. Guarantees that release() gives back everything that checks have reserved, in reverse
// order and once.
import type { ApiError } from '../http/errors.ts';
import type { ApiKeyCredential, OrgCredential } from '../http/credential.ts';
import type { EnteringEvent, EventUse, MeteredEvent } from './budget/uses.ts';
import {
  type Check,
  type InstantCheck,
  type Intake,
  type Phase,
  PHASES,
  type RequestFacts,
  type WaitingCheck,
} from './check.ts';
import { ADMIT, errorOf, type Reject, type Reservation, type Settled, type Wait } from './decision.ts';
import type { FairTurns } from './fair_turns.ts';
import type { InFlightReservation } from './in_flight.ts';

/** Takes a header of the response. */
export type HeaderSink = (name: string, value: string) => void;

/** The checks of one intake, by phase. */
export interface Steps {
  readonly instant: Readonly<Record<InstantCheck['phase'], readonly InstantCheck[]>>;
  readonly waiting: Readonly<Record<WaitingCheck['phase'], readonly WaitingCheck[]>>;
}

/** Returns the checks of an intake by phase, in the order of the list. */
export function stepsOf(checks: readonly Check[], intake: Intake): Steps {
  const own = checks.filter(({ intakes }) => intakes.includes(intake));
  const instant = (phase: InstantCheck['phase']) => own.filter((check): check is InstantCheck => check.phase === phase);
  const waiting = (phase: WaitingCheck['phase']) => own.filter((check): check is WaitingCheck => check.phase === phase);
  return {
    instant: {
      arrived: instant('arrived'),
      identified: instant('identified'),
      reading: instant('reading'),
      parsed: instant('parsed'),
      failed: instant('failed'),
    },
    waiting: { validated: waiting('validated'), parsing: waiting('parsing'), committing: waiting('committing') },
  };
}

export interface AdmissionRequestParts {
  intake: Intake;
  steps: Steps;
  turns: Pick<FairTurns, 'timed'>;
  header: HeaderSink;
  onReject: ((check: string) => void) | undefined;
}

export class AdmissionRequest implements RequestFacts {
  readonly intake: Intake;
  org_id = '';
  key: ApiKeyCredential | null = null;
  backfill = false;
  bytes = 0;
  event_count = 0;
  eventsOf: () => readonly MeteredEvent[] = () => [];
  uses: readonly EventUse[] | null = null;
  in_flight: InFlightReservation | null = null;
  event_rate_charged = false;
  readonly #parts: AdmissionRequestParts;
  readonly #reservations: { phase: Phase; reservation: Reservation }[] = [];

  constructor(parts: AdmissionRequestParts) {
    this.#parts = parts;
    this.intake = parts.intake;
  }

  /** The request has arrived; its caller is unknown. @throws ApiError rate_limited */
  arrived(): void {
    this.#require('arrived');
  }

  /**
   * The caller is authenticated.
   * @param credential of the caller; left out for what the process itself records
   * @param more backfill: true for events of the past
   * @throws ApiError rate_limited
   */
  identified(org_id: string, credential?: OrgCredential, more: { backfill?: boolean } = {}): void {
    this.org_id = org_id;
    this.key = credential?.kind === 'api_key' ? credential : null;
    this.backfill = more.backfill ?? false;
    this.#require('identified');
  }

  /**
   * Permission and headers are valid, and the body is about to be read.
   * @returns null where nothing has to be waited for, otherwise the milliseconds waited
   * @throws ApiError (or rejects with it) rate_limited
   */
  validated(): Promise<number> | null {
    const began = performance.now();
    const waits = this.#requireWaiting('validated');
    return waits === null ? null : waits.then(() => performance.now() - began);
  }

  /**
   * Reserves bytes that are about to be kept in memory. Returns the error where there is no room
   * for them.
   */
  readonly reserveBytes = (bytes: number): ApiError | null => {
    this.bytes = bytes;
    const rejection = this.#ask('reading');
    return rejection === null ? null : errorOf(rejection);
  };

  /**
   * Parses the body when it is the organization's turn on the event loop: at once, or later.
   * @param bytes size of the body
   * @throws ApiError (or rejects with it) rate_limited when the turn does not come in time; what
   * `parse` throws
   */
  parsing<T>(bytes: number, parse: () => T): T | Promise<T> {
    const { turns } = this.#parts;
    this.bytes = bytes;
    const waits = this.#requireWaiting('parsing');
    return waits === null ? turns.timed(this.org_id, parse) : waits.then(() => turns.timed(this.org_id, parse));
  }

  /** The body is parsed. @throws ApiError rate_limited */
  parsed(event_count: number): void {
    this.event_count = event_count;
    this.#require('parsed');
  }

  /**
   * The events are about to be published, or the model is about to be called.
   * @param eventsOf returns the events as the budget meters them; called only where a budget limits
   * the organization
   * @returns null where nothing has to be waited for
   * @throws ApiError (or rejects with it) rate_limited, payment_required, unauthenticated;
   * upstream_unavailable where no process knows yet what the organization has used
   */
  committing(eventsOf: () => readonly MeteredEvent[]): Promise<void> | null {
    this.eventsOf = eventsOf;
    this.uses = null;
    return this.#requireWaiting('committing');
  }

  /** Notes on events by which key they came, with its labels, and whether they are of the past. */
  stamp(events: readonly EnteringEvent[]): void {
    const { key, backfill } = this;
    if (key === null && !backfill) return;
    for (const { event } of events) {
      if (backfill) event.backfill = true;
      if (key === null) continue;
      event.key_id = key.key_id;
      const labels = key.limits?.labels ?? null;
      if (labels === null) continue;
      event.label_user_id = labels.user_id ?? '';
      event.label_department = labels.department ?? '';
    }
  }

  /**
   * Reports that the ingest log holds the events.
   * @param positions position of the last message, by partition
   */
  confirm(positions: ReadonlyMap<number, number>): void {
    for (const { reservation } of this.#reservations) reservation.confirm?.(positions);
  }

  /** The request ends with an error. @throws ApiError rate_limited, in the place of that error */
  failed(): void {
    this.#require('failed');
  }

  /** Releases what has been reserved from a phase on: everything, at the end of the request. */
  release(from: Phase = 'arrived'): void {
    const first = PHASES.indexOf(from);
    for (let last = this.#reservations.at(-1); last !== undefined; last = this.#reservations.at(-1)) {
      if (PHASES.indexOf(last.phase) < first) return;
      this.#reservations.pop();
      last.reservation.release();
    }
  }

  #require(phase: InstantCheck['phase']): void {
    const rejection = this.#ask(phase);
    if (rejection !== null) throw errorOf(rejection);
  }

  #ask(phase: InstantCheck['phase']): Reject | null {
    for (const check of this.#parts.steps.instant[phase]) {
      const rejection = this.#take(check, check.decide(this));
      if (rejection !== null) return rejection;
    }
    return null;
  }

  #requireWaiting(phase: WaitingCheck['phase'], from = 0): Promise<void> | null {
    const checks = this.#parts.steps.waiting[phase];
    for (let next = from; next < checks.length; next++) {
      const check = checks[next];
      if (check === undefined) break;
      const decision = check.decide(this);
      if (decision.kind === 'wait') return this.#wait(check, decision, () => this.#requireWaiting(phase, next + 1));
      this.#requireSettled(check, decision);
    }
    return null;
  }

  async #wait(check: Check, { decided }: Wait, goOn: () => Promise<void> | null): Promise<void> {
    this.#requireSettled(check, await decided);
    const waits = goOn();
    if (waits !== null) await waits;
  }

  #requireSettled(check: Check, decision: Settled): void {
    const rejection = this.#take(check, decision);
    if (rejection !== null) throw errorOf(rejection);
  }

  /** Takes what a decision brings. Returns the rejection, if it is one. */
  #take(check: Check, decision: Settled): Reject | null {
    if (decision === ADMIT) return null;
    const { header, onReject } = this.#parts;
    for (const name in decision.limit_headers) header(name, decision.limit_headers[name] ?? '');
    if (decision.kind === 'reject') {
      onReject?.(check.name);
      return decision;
    }
    if (decision.reservation !== null)
      this.#reservations.push({ phase: check.phase, reservation: decision.reservation });
    return null;
  }
}
