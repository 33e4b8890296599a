// Idempotency-Key of declared routes: the same POST sent again gets the first answer and does nothing twice, across processes
// and restarts. One record a key: made first as a lock (only one request wins), then holding the answer for 24 h. A lock carries
// a deadline that its holder keeps moving, so that a holder that died blocks for seconds, not for a day. Ingest, whose work is
// recognised by its content anyway, has a cheaper way of its own.
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import { ApiError } from './errors.ts';
import {
  fingerprintOf,
  inProgress,
  type KeyedStore,
  type Place,
  placeOf,
  readRecord,
  reused,
  Running,
} from './keyed_store.ts';
import type { TenantShares } from './keyed_shares.ts';
import { openBytes, sealBytes } from './sealed_answer.ts';

const pack = promisify<Uint8Array, Buffer>(gzip);
const unpack = promisify<Uint8Array, { maxOutputLength: number }, Buffer>(gunzip);

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** A lock that was not renewed for this long belongs to a process that died. */
export const LOCK_MS = 6_000;
const RENEW_MS = 1_500;
/**
 * Of an answer as it is kept: as it is, or compressed where it is larger. In base64 that makes 88 KiB.
 */
export const ANSWER_BYTES_MAX = 64 * 1024;
/** Larger answers are not compressed either: one that shows what a body brought is below it, and a text shrinks no further. */
export const PACKED_BYTES_MAX = 8 * 1024 * 1024;
/**
 * What one tenant may keep, in records and in bytes: beyond it a request with a new key is refused before it does anything. An answer
 * is never dropped within its 24 hours to make room, as a repeat of its request would then do the work twice.
 */
export const ANSWERS_TENANT_MAX = 20_000;
export const ANSWERS_TENANT_BYTES_MAX = 64 * 1024 * 1024;

const record = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running'), fingerprint: z.string(), holder: z.string(), deadline: z.number() }),
  // A state of its own for what is compressed: a process of a version before fails at it rather than answer with it.
  z.object({
    state: z.enum(['done', 'packed']),
    fingerprint: z.string(),
    status: z.int(),
    body: z.string(),
    sealed: z.boolean(),
  }),
  // The work was done, and its answer was too large.
  z.object({ state: z.literal('unkept'), fingerprint: z.string() }),
  // What is only read, and made anew each time.
  z.object({ state: z.literal('again'), fingerprint: z.string() }),
]);
type IdempotencyRecord = z.infer<typeof record>;
type Lock = Extract<IdempotencyRecord, { state: 'running' }>;
type Kept = Extract<IdempotencyRecord, { state: 'done' | 'packed' }>;

/** An answer that is kept. */
export interface StoredAnswer {
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
  /**
   * Keeps a 2xx answer for later repeats. Where it is too large: what changed something is never done twice, a repeat is refused; what
   * only read gives the key back.
   */
  keep(answer: StoredAnswer, work: { changed: boolean }): Promise<void>;
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
  store: Pick<KeyedStore, 'checkConnected' | 'write' | 'read' | 'remove'>;
  /** What each tenant may keep; left out: as much as the store takes. */
  shares?: Pick<TenantShares, 'fullUntil' | 'added'>;
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
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, conflict, upstream_unavailable, rate_limited
   */
  async begin(request: IdempotentRequest): Promise<{ lock: IdempotencyLock } | { replay: StoredAnswer }> {
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

  /**
   * Remembers nothing of a request but which body its key stands for: it only reads, and runs again. Call what it gives back when the
   * request fails: its key is then free again.
   * @throws ApiError idempotency_key_reused, upstream_unavailable, rate_limited
   */
  async mark(request: Omit<IdempotentRequest, 'sealWith'>): Promise<() => Promise<void>> {
    const { store, onProblem } = this.#deps;
    store.checkConnected();
    const place = placeOf(request.tenant, request.endpoint, request.key);
    const mark: IdempotencyRecord = { state: 'again', fingerprint: fingerprintOf(request.body) };
    const revision = await this.#make(place, JSON.stringify(mark));
    if (revision === null) {
      const found = await store.read(place);
      if (found !== null && readRecord(record, found).fingerprint !== mark.fingerprint) throw reused();
      return () => Promise.resolve();
    }
    return async () => {
      await store.remove(place, revision).catch((cause: unknown) => {
        onProblem('an Idempotency-Key of a request that failed could not be given back', cause);
      });
    };
  }

  /**
   * Makes a record under a key that has none. A key that has one can be asked for however full the tenant's share is.
   * @returns its revision; null where there is a record
   * @throws ApiError rate_limited when the tenant has filled its share, upstream_unavailable
   */
  async #make(place: Place, text: string): Promise<number | null> {
    const { store, shares, now } = this.#deps;
    const fullUntil = (await shares?.fullUntil(place.tenant)) ?? null;
    if (fullUntil !== null) {
      if ((await store.read(place)) !== null) return null;
      throw shareFull(fullUntil - now());
    }
    const revision = await store.write(place, text, 0);
    if (revision !== null) shares?.added(place.tenant, { bytes: text.length, records: 1 });
    return revision;
  }

  async #take(
    place: Place,
    fingerprint: string,
    request: IdempotentRequest,
    leave: () => void,
  ): ReturnType<Idempotency['begin']> {
    const { store, now } = this.#deps;
    const mine: Lock = { state: 'running', fingerprint, holder: randomUUID(), deadline: now() + LOCK_MS };
    const revision = await this.#make(place, JSON.stringify(mine));
    if (revision !== null) return { lock: this.#lock(place, mine, revision, request, leave) };
    const found = await store.read(place);
    // Gone between the two calls: its holder failed and released it just now.
    if (found === null) throw inProgress('The first request with this Idempotency-Key has just ended. Send it again.');
    const held = readRecord(record, found);
    if (held.fingerprint !== fingerprint) throw reused();
    if ('body' in held) return { replay: await openAnswer(held, request) };
    if (held.state === 'unkept') throw tooLarge();
    if (held.state === 'again' || held.deadline < now()) {
      const taken = await store.write(place, JSON.stringify(mine), found.revision);
      if (taken !== null) return { lock: this.#lock(place, mine, taken, request, leave) };
    }
    throw inProgress();
  }

  #lock(place: Place, mine: Lock, first: number, request: IdempotentRequest, leave: () => void): IdempotencyLock {
    const { store, shares, now, onProblem } = this.#deps;
    let revision: number | null = first;
    let last: Promise<void> = Promise.resolve();
    // Writes follow each other, as each needs the revision of the one before. A write that lost means that the lock is another's now.
    const write = (next: IdempotencyRecord | null): Promise<void> => {
      last = last.then(async () => {
        try {
          if (next === null && revision !== null) await store.remove(place, revision);
          const text = JSON.stringify(next);
          revision = next === null || revision === null ? null : await store.write(place, text, revision);
          // The answer takes the place of the lock, which was counted as a record.
          if (revision !== null && next !== null && next.state !== 'running')
            shares?.added(place.tenant, { bytes: text.length, records: 0 });
          if (revision === null && next !== null && next.state !== 'running')
            throw new Error('its lock was taken over or trimmed away');
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
      // Its lock is renewed meanwhile.
      keep: async (answer, { changed }) => {
        const { fingerprint } = mine;
        await end((await keptOf(answer, fingerprint, request)) ?? (changed ? { state: 'unkept', fingerprint } : null));
      },
      release: () => end(null),
    };
  }
}

function shareFull(waitMs: number): ApiError {
  const bytes = `${String(ANSWERS_TENANT_BYTES_MAX / (1024 * 1024))} MiB`;
  const detail =
    `Idempotency-Key: the answers of the last 24 hours fill this organization's share of ${String(ANSWERS_TENANT_MAX)} answers or ${bytes}. ` +
    'Nothing was done. Send the request again after Retry-After seconds, or without an Idempotency-Key.';
  return new ApiError('rate_limited', detail, {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}

function tooLarge(): ApiError {
  const detail =
    'The request with this Idempotency-Key was carried out, and its answer was too large to be kept. It is not carried out again.';
  return new ApiError('conflict', detail);
}

/** The record of an answer; null for one that is too large. What is sealed is compressed before, as nothing shrinks once it is. */
async function keptOf(
  { status, body }: StoredAnswer,
  fingerprint: string,
  { key, sealWith }: IdempotentRequest,
): Promise<Kept | null> {
  const length = Buffer.byteLength(body);
  if (length > PACKED_BYTES_MAX) return null;
  const state = length > ANSWER_BYTES_MAX ? 'packed' : 'done';
  const plain = Buffer.from(body);
  const bytes = state === 'packed' ? await pack(plain) : plain;
  if (bytes.length > ANSWER_BYTES_MAX) return null;
  if (sealWith !== undefined)
    return { state, fingerprint, status, sealed: true, body: sealBytes(bytes, { key, caller: sealWith }) };
  return { state, fingerprint, status, sealed: false, body: state === 'packed' ? bytes.toString('base64') : body };
}

async function openAnswer(
  { state, status, sealed, body }: Kept,
  { key, sealWith }: IdempotentRequest,
): Promise<StoredAnswer> {
  const bytes = sealed
    ? openBytes(body, { key, caller: sealWith ?? '' })
    : Buffer.from(body, state === 'packed' ? 'base64' : 'utf8');
  if (bytes === null)
    throw new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used by another caller of this org');
  const plain = state === 'packed' ? await unpack(bytes, { maxOutputLength: PACKED_BYTES_MAX }) : bytes;
  return { status, body: plain.toString('utf8') };
}
