// Idempotency-Key of declared routes: the same POST sent again gets the first answer and does nothing twice, across processes
// and restarts. One record a key: made first as a lock (only one request wins), then holding the answer for 24 h. A lock carries
// a deadline that its holder keeps moving, so that a holder that died blocks for seconds, not for a day. Ingest, whose work is
// recognised by its content anyway, has a cheaper way of its own.
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import { ApiError } from './errors.ts';
import { fingerprintOf, inProgress, type KeyedStore, type Place, placeOf, readRecord, reused, Running } from './keyed_store.ts';
import { openText, sealText } from './sealed_answer.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** A lock that was not renewed for this long belongs to a process that died. */
export const LOCK_MS = 6_000;
const RENEW_MS = 1_500;
/** Larger answers are not kept: a repeat runs again. */
export const ANSWER_BYTES_MAX = 64 * 1024;
/** Answers of one tenant that are kept; its oldest make room. */
export const ANSWERS_TENANT_MAX = 10_000;

const record = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running'), fingerprint: z.string(), holder: z.string(), deadline: z.number() }),
  z.object({ state: z.literal('done'), fingerprint: z.string(), status: z.int(), body: z.string(), sealed: z.boolean() }),
]);
type IdempotencyRecord = z.infer<typeof record>;
type Lock = Extract<IdempotencyRecord, { state: 'running' }>;
type Done = Extract<IdempotencyRecord, { state: 'done' }>;

/** An answer that is kept. */
export interface KeptAnswer {
  status: number;
  body: string;
}

export interface IdempotentRequest {
  /** Whose key it is: keys of different tenants never meet. */
  tenant: string;
  /** Method and path. */
  endpoint: string;
  /** A UUID, as checked by `idempotencyKey`. */
  key: string;
  body: Uint8Array | string;
  /** Set where the answer holds a secret: what only the caller has, which then seals what is kept. */
  sealWith?: string;
}

/** The right to do the work once. Exactly one of keep and release must be called. */
export interface IdempotencyLock {
  /** Keeps a 2xx answer for later repeats. */
  keep(answer: KeptAnswer): Promise<void>;
  /** Gives the key back after any other answer: a repeat runs again. */
  release(): Promise<void>;
}

/** The checked value of the header, null without one. @throws ApiError invalid_request */
export function idempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  const key = String(header).trim();
  if (!UUID.test(key)) throw new ApiError('invalid_request', 'Idempotency-Key: takes a UUID');
  return key.toLowerCase();
}

export interface IdempotencyDeps {
  store: KeyedStore;
  /** Milliseconds since the epoch; the clocks of all processes must agree within a second or so. */
  now: () => number;
  onProblem: (problem: string, cause: unknown) => void;
}

export class Idempotency {
  readonly #deps: IdempotencyDeps;
  readonly #running = new Running();

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
  }

  /**
   * Takes the key, or gives back the answer that it already has.
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, upstream_unavailable, rate_limited
   */
  async begin(request: IdempotentRequest): Promise<{ lock: IdempotencyLock } | { replay: KeptAnswer }> {
    this.#deps.store.checkConnected();
    const place = placeOf(request.tenant, request.endpoint, request.key);
    const fingerprint = fingerprintOf(request.body);
    const leave = this.#running.enter(place, fingerprint);
    let locked = false;
    try {
      const begun = await this.#take(place, fingerprint, request, leave);
      locked = 'lock' in begun;
      return begun;
    } finally {
      if (!locked) leave();
    }
  }

  async #take(place: Place, fingerprint: string, request: IdempotentRequest, leave: () => void): ReturnType<Idempotency['begin']> {
    const { store, now } = this.#deps;
    const mine: Lock = { state: 'running', fingerprint, holder: randomUUID(), deadline: now() + LOCK_MS };
    const revision = await store.write(place, JSON.stringify(mine), 0);
    if (revision !== null) return { lock: this.#lock(place, mine, revision, request, leave) };
    const found = await store.read(place);
    // Gone between the two calls: its holder failed and released it just now.
    if (found === null) throw inProgress('The first request with this Idempotency-Key has just ended. Send it again.');
    const held = readRecord(record, found);
    if (held.fingerprint !== fingerprint) throw reused();
    if (held.state === 'done') return { replay: openAnswer(held, request) };
    if (held.deadline < now()) {
      const taken = await store.write(place, JSON.stringify(mine), found.revision);
      if (taken !== null) return { lock: this.#lock(place, mine, taken, request, leave) };
    }
    throw inProgress();
  }

  #lock(place: Place, mine: Lock, first: number, request: IdempotentRequest, leave: () => void): IdempotencyLock {
    const { store, now, onProblem } = this.#deps;
    let revision: number | null = first;
    let last: Promise<void> = Promise.resolve();
    // Writes follow each other, as each needs the revision of the one before. A write that lost means that the lock is another's now.
    const write = (next: IdempotencyRecord | null): Promise<void> => {
      last = last.then(async () => {
        try {
          if (next === null && revision !== null) await store.remove(place, revision);
          revision = next === null || revision === null ? null : await store.write(place, JSON.stringify(next), revision);
          if (revision === null && next?.state === 'done') throw new Error('its lock was taken over or trimmed away');
        } catch (cause) {
          onProblem('an idempotency record could not be written; a repeat of its request would run again', cause);
        }
      });
      return last;
    };
    const renewal = setInterval(() => void write({ ...mine, deadline: now() + LOCK_MS }), RENEW_MS);
    renewal.unref();
    const end = async (next: IdempotencyRecord | null): Promise<void> => {
      clearInterval(renewal);
      await write(next);
      leave();
    };
    return {
      keep: (answer) => end(Buffer.byteLength(answer.body) > ANSWER_BYTES_MAX ? null : doneOf(answer, mine.fingerprint, request)),
      release: () => end(null),
    };
  }
}

function doneOf({ status, body }: KeptAnswer, fingerprint: string, { key, sealWith }: IdempotentRequest): Done {
  const sealed = sealWith !== undefined;
  return { state: 'done', fingerprint, status, sealed, body: sealed ? sealText(body, { key, caller: sealWith }) : body };
}

function openAnswer(kept: Done, { key, sealWith }: IdempotentRequest): KeptAnswer {
  if (!kept.sealed) return { status: kept.status, body: kept.body };
  const body = openText(kept.body, { key, caller: sealWith ?? '' });
  if (body === null) throw new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used by another caller of this org');
  return { status: kept.status, body };
}
