// The contract of an admission check: when it is asked, for which requests, and what it knows of a
// request. Types only, but for the order of the phases.
import type { ApiKeyCredential } from '../http/credential.ts';
import type { Decision, Settled } from './decision.ts';
import type { EventUse, MeteredEvent } from './budget/uses.ts';
import type { InFlightReservation } from './in_flight.ts';

/**
 * The ways into the service. `record` stores what the API process itself made; `record_preflight`
 * asks before it is made.
 */
export type Intake = 'ingest' | 'app' | 'otlp' | 'gateway' | 'record' | 'record_preflight';

/** Points of a request at which checks are asked, in their order. */
export const PHASES = [
  /** The caller is unknown. */
  'arrived',
  /** The caller is authenticated. */
  'identified',
  /** Permission and headers are valid; no byte of the body has been read. */
  'validated',
  /** More bytes are about to be kept in memory; comes once for each piece of the body. */
  'reading',
  /** The body is complete and about to be parsed. */
  'parsing',
  /** The number of events is known. */
  'parsed',
  /** The events are about to be published, or the model is about to be called. */
  'committing',
  /** The request ends with an error. */
  'failed',
] as const;
export type Phase = (typeof PHASES)[number];
/** Phases whose checks may wait. */
export type WaitingPhase = 'validated' | 'parsing' | 'committing';

/** Facts of a request that checks may use, filled in phase by phase. */
export interface RequestFacts {
  readonly intake: Intake;
  /** Empty until the caller is known. */
  readonly org_id: string;
  /** The API key of the caller; null before it is known, and for any other caller. */
  readonly key: ApiKeyCredential | null;
  /** True for events of the past, which no budget is asked about. */
  readonly backfill: boolean;
  /** Bytes about to be kept (reading), or size of the body (parsing). */
  readonly bytes: number;
  /** Events of the body; 0 until it is parsed. */
  readonly event_count: number;
  /**
   * Returns the events as the budget meters them; called only for an organization with a hard
   * limit.
   */
  readonly eventsOf: () => readonly MeteredEvent[];
  /** Use and model of each event; null until a check of a budget needs them. Set by budget/check.ts. */
  uses: readonly EventUse[] | null;
  /** Bytes and events in flight that the request has reserved; set by in_flight.ts. */
  in_flight: InFlightReservation | null;
  /**
   * True once the app events of the request have been charged to the rate limit; set by
   * rate/checks.ts.
   */
  event_rate_charged: boolean;
}

interface CheckOf<P extends Phase, D> {
  readonly phase: P;
  /** Unique within an intake. */
  readonly name: string;
  /** The requests that meet the check. */
  readonly intakes: readonly Intake[];
  /** Decides in memory, in one turn of the event loop. Reserves nothing when it rejects. */
  readonly decide: (request: RequestFacts) => D;
}

export type InstantCheck = CheckOf<Exclude<Phase, WaitingPhase>, Settled>;
export type WaitingCheck = CheckOf<WaitingPhase, Decision>;
export type Check = InstantCheck | WaitingCheck;
