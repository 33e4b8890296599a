// Idempotency-Key of ingest, at one synced write a request instead of the two of other routes. A
// claim in the memory of nats-server decides which of two requests runs; only the outcome is
// written to disk, after the events are in the log. Takes tenant, endpoint, key and body; returns
// the right to publish, or the request id and time of the first response. The ids are derived from
// the body again, which the fingerprint proves to be the same.
//
// A lost claim (its process or nats-server died, or it expired) does no harm: both requests
// publish, the pipeline recognizes their events as the same, and the outcome written first answers
// both.
import { z } from 'zod';
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import {
  fingerprintOf,
  inProgress,
  type KeyedStore,
  type Place,
  placeOf,
  readRecord,
  reused,
  Running,
} from '../../http/keyed_store.ts';

/** Maximum number of keys remembered for one tenant; the oldest are evicted. */
export const INGEST_KEYS_TENANT_MAX = 100_000;

/** The part of a response that cannot be derived from the body. */
const kept = z.object({
  fingerprint: z.string(),
  request_id: z.string(),
  /** Time of the response, milliseconds since the epoch. */
  at: z.number(),
});
export type IngestOutcome = Pick<z.infer<typeof kept>, 'request_id' | 'at'>;

export interface KeyedIngest {
  tenant: string;
  endpoint: string;
  /** A UUID, as checked by `idempotencyKey`. */
  key: string;
  body: Uint8Array;
}

/** The right to publish. The holder calls exactly one of keep and release. */
export interface IngestClaim {
  /**
   * Stores the outcome once all events are in the log. Returns the outcome that counts: another one
   * where a request came first whose claim had expired.
   * @throws ApiError upstream_unavailable when the outcome could not be stored;
   * idempotency_key_reused when the first request had another body
   */
  keep: (outcome: IngestOutcome, withinMs: number) => Promise<IngestOutcome>;
  /** Releases the key: a repeat runs again. */
  release: () => Promise<void>;
}

export interface IngestOnceDeps {
  /** Claims of running requests: in memory, expiring within seconds. */
  claims: KeyedStore;
  /** Outcomes: on disk, for 24 hours. */
  outcomes: KeyedStore;
  onProblem: ReportProblem;
}

export class IngestOnce {
  readonly #deps: IngestOnceDeps;
  readonly #running = new Running();

  constructor(deps: IngestOnceDeps) {
    this.#deps = deps;
  }

  /**
   * Claims the key, or returns the outcome that it already has.
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, upstream_unavailable,
   * rate_limited
   */
  async begin(request: KeyedIngest): Promise<{ claim: IngestClaim } | { replay: IngestOutcome }> {
    this.#deps.outcomes.checkConnected();
    const place = placeOf(request.tenant, request.endpoint, request.key);
    const fingerprint = fingerprintOf(request.body);
    const leave = this.#running.enter(place, fingerprint);
    let claimed = false;
    try {
      const [revision, replay] = await Promise.all([
        this.#deps.claims.write(place, fingerprint, 0),
        this.#outcome(place, fingerprint),
      ]);
      if (replay !== null) return { replay };
      if (revision === null) return { replay: await this.#lost(place, fingerprint) };
      claimed = true;
      return { claim: this.#claim(place, fingerprint, revision, leave) };
    } finally {
      if (!claimed) leave();
    }
  }

  /** Another request has the claim; its outcome may be stored by now. */
  async #lost(place: Place, fingerprint: string): Promise<IngestOutcome> {
    const [outcome, running] = await Promise.all([this.#outcome(place, fingerprint), this.#deps.claims.read(place)]);
    if (outcome !== null) return outcome;
    if (running !== null && running.text !== fingerprint) throw reused();
    throw inProgress();
  }

  /**
   * Returns the outcome of the key; null without one.
   * @throws ApiError idempotency_key_reused when the outcome is of another body
   */
  async #outcome(place: Place, fingerprint: string): Promise<IngestOutcome | null> {
    const found = await this.#deps.outcomes.read(place);
    if (found === null) return null;
    const outcome = readRecord(kept, found);
    if (outcome.fingerprint !== fingerprint) throw reused();
    return outcome;
  }

  #claim(place: Place, fingerprint: string, revision: number, leave: () => void): IngestClaim {
    const { claims, outcomes, onProblem } = this.#deps;
    const release = async () => {
      leave();
      await claims.remove(place, revision).catch((cause: unknown) => {
        onProblem('a claim on an Idempotency-Key could not be released; it expires within seconds', cause);
      });
    };
    const keep: IngestClaim['keep'] = async (outcome, withinMs) => {
      let written: number | null = null;
      try {
        written = await outcomes.write(place, JSON.stringify({ fingerprint, ...outcome }), 0, withinMs);
      } catch (error) {
        await release();
        throw error;
      }
      leave();
      return written === null ? ((await this.#outcome(place, fingerprint)) ?? outcome) : outcome;
    };
    return { keep, release };
  }
}
