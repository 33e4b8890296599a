// Idempotency-Key of ingest, cheaper than that of other routes: one synced write a request instead of two. Which of two requests
// runs is decided by a claim in memory of nats-server, and only the outcome is written to disk, after the events are in the log.
// In: tenant, endpoint, key and body. Out: the right to publish, or the answer of the first time: its request id and time; ids
// come out of the body again, which the fingerprint proves to be the same. A claim that is lost (its process or nats-server
// died, or it ran out) does no harm: both requests publish, their events are recognised as the same, and the outcome that was
// written first answers both.
import { z } from 'zod';
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

/** Keys of one tenant that are remembered; its oldest make room. */
export const INGEST_KEYS_TENANT_MAX = 100_000;

/** What cannot be derived from the body again. */
const kept = z.object({
  fingerprint: z.string(),
  request_id: z.string(),
  /** Of the answer, milliseconds since the epoch. */
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

/** The right to publish. Exactly one of keep and release must be called. */
export interface IngestClaim {
  /**
   * Keeps the outcome, once all events are in the log. Gives back the outcome that holds: another one where a request whose
   * claim had run out came first.
   * @throws ApiError upstream_unavailable when it could not be kept; idempotency_key_reused when what came first had another body
   */
  keep: (outcome: IngestOutcome, withinMs: number) => Promise<IngestOutcome>;
  /** Gives the key back: a repeat runs again. */
  release: () => Promise<void>;
}

export interface IngestOnceDeps {
  /** Claims of running requests: in memory, for seconds. */
  claims: KeyedStore;
  /** Outcomes: on disk, for 24 h. */
  outcomes: KeyedStore;
  onProblem: (problem: string, cause: unknown) => void;
}

export class IngestOnce {
  readonly #deps: IngestOnceDeps;
  readonly #running = new Running();

  constructor(deps: IngestOnceDeps) {
    this.#deps = deps;
  }

  /**
   * Claims the key, or gives back the outcome that it already has.
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, upstream_unavailable, rate_limited
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

  /** Another request has the claim; its outcome may be there by now. */
  async #lost(place: Place, fingerprint: string): Promise<IngestOutcome> {
    const [outcome, running] = await Promise.all([this.#outcome(place, fingerprint), this.#deps.claims.read(place)]);
    if (outcome !== null) return outcome;
    if (running !== null && running.text !== fingerprint) throw reused();
    throw inProgress();
  }

  /** @throws ApiError idempotency_key_reused when it is of another body */
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
        onProblem('a claim on an Idempotency-Key could not be given back; it runs out in seconds', cause);
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
