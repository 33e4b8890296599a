// Idempotency-Key of declared routes: a repeated POST gets the first response and has no second
// effect, across processes and restarts. Each key has one record: first a lock (only one request
// wins), then the response for 24 hours. A lock has a deadline that its owner keeps moving, so a
// dead owner blocks for seconds rather than a day. Ingest, whose work is recognized by its content
// anyway, has a cheaper implementation (api/intake/ingest/once.ts).
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { z } from 'zod';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
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
/** A lock that has not been renewed for this long belongs to a dead process. */
export const LOCK_MS = 6_000;
const RENEW_MS = 1_500;
/** Maximum bytes of a stored response, as it is or compressed; 88 KiB in base64. */
export const ANSWER_BYTES_MAX = 64 * 1024;
/**
 * Maximum bytes of a response that is compressed. A response that echoes its request is smaller,
 * and other text does not shrink further.
 */
export const PACKED_BYTES_MAX = 8 * 1024 * 1024;
/**
 * Maximum records and bytes that one tenant may store. Beyond them a request with a new key is
 * rejected before it does anything. A response is never evicted within its 24 hours, because a
 * repeat of its request would then do the work twice.
 */
export const ANSWERS_TENANT_MAX = 20_000;
export const ANSWERS_TENANT_BYTES_MAX = 64 * 1024 * 1024;

const record = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running'), fingerprint: z.string(), holder: z.string(), deadline: z.number() }),
  // Compressed responses have a state of their own: a process of an earlier version fails at it
  // rather than send it.
  z.object({
    state: z.enum(['done', 'packed']),
    fingerprint: z.string(),
    status: z.int(),
    body: z.string(),
    sealed: z.boolean(),
  }),
  // The work was done, and its response was too large to store.
  z.object({ state: z.literal('unkept'), fingerprint: z.string() }),
  // The request only reads and runs again each time.
  z.object({ state: z.literal('again'), fingerprint: z.string() }),
]);
type IdempotencyRecord = z.infer<typeof record>;
type Lock = Extract<IdempotencyRecord, { state: 'running' }>;
type StoredOutcome = Extract<IdempotencyRecord, { state: 'done' | 'packed' }>;

/** A stored response. */
export interface StoredAnswer {
  status: number;
  body: string;
}

export interface IdempotentRequest {
  /** Tenant of the key: keys of different tenants never collide. */
  tenant: string;
  /** Method and path of the request. */
  endpoint: string;
  /** A UUID, as checked by `idempotencyKey`. */
  key: string;
  body: Uint8Array | string;
  /**
   * Set where the response holds a secret: a value that only the caller has, which seals the stored
   * response.
   */
  sealWith?: string;
}

/** The right to do the work once. The holder calls exactly one of keep and release. */
export interface IdempotencyLock {
  /**
   * Stores a 2xx response for repeats. Where it is too large, a request that changed something is
   * never run again and its repeats are rejected; one that only reads releases the key.
   */
  keep(answer: StoredAnswer, work: { changed: boolean }): Promise<void>;
  /** Releases the key after any other response: a repeat runs again. */
  release(): Promise<void>;
}

/**
 * Returns the checked value of the header; null without one.
 * @throws ApiError invalid_request
 */
export function idempotencyKey(header: string | string[] | undefined): string | null {
  if (header === undefined) return null;
  const key = String(header).trim();
  if (!UUID.test(key)) throw new ApiError('invalid_request', 'Idempotency-Key: must be a UUID');
  return key.toLowerCase();
}

export interface IdempotencyDeps {
  store: Pick<KeyedStore, 'checkConnected' | 'write' | 'read' | 'remove'>;
  /** Bounds what each tenant may store; left out: the store is the only bound. */
  shares?: Pick<TenantShares, 'fullUntil' | 'added'>;
  /** Milliseconds since the epoch; the clocks of all processes must agree within about a second. */
  now: () => number;
  onProblem: ReportProblem;
}

export class Idempotency {
  readonly #deps: IdempotencyDeps;
  readonly #running = new Running();

  constructor(deps: IdempotencyDeps) {
    this.#deps = deps;
  }

  /**
   * Locks the key, or returns the response that it already has.
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, conflict,
   * upstream_unavailable, rate_limited
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
   * Records only the body of a request, which reads and runs again on a repeat. The returned
   * function releases the key when the request fails.
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
        onProblem('the Idempotency-Key of a failed request could not be released', cause);
      });
    };
  }

  /**
   * Creates a record under a new key. Known keys are answered however full the tenant's share is.
   * @returns the revision of the record; null where the key has one
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
    // The record disappeared between the two calls: its request failed and released the key.
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
    // Writes are serialized, because each needs the revision of the one before. A lost write means
    // that another process has taken over the lock.
    const write = (next: IdempotencyRecord | null): Promise<void> => {
      last = last.then(async () => {
        try {
          if (next === null && revision !== null) await store.remove(place, revision);
          const text = JSON.stringify(next);
          revision = next === null || revision === null ? null : await store.write(place, text, revision);
          // The response replaces the lock, which was counted as a record.
          if (revision !== null && next !== null && next.state !== 'running')
            shares?.added(place.tenant, { bytes: text.length, records: 0 });
          if (revision === null && next !== null && next.state !== 'running')
            throw new Error('its lock was taken over or trimmed');
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
      // The lock is renewed meanwhile.
      keep: async (answer, { changed }) => {
        const { fingerprint } = mine;
        await end((await keptOf(answer, fingerprint, request)) ?? (changed ? { state: 'unkept', fingerprint } : null));
      },
      release: () => end(null),
    };
  }
}

function shareFull(waitMs: number): ApiError {
  const bytes = `${ANSWERS_TENANT_BYTES_MAX / (1024 * 1024)} MiB`;
  const detail =
    `Idempotency-Key: the answers of the last 24 hours fill this organization's share of ${ANSWERS_TENANT_MAX} answers or ${bytes}. ` +
    'Nothing was done. Retry after the number of seconds in Retry-After, or without an Idempotency-Key.';
  return new ApiError('rate_limited', detail, {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1000))) },
  });
}

function tooLarge(): ApiError {
  const detail =
    'The request with this Idempotency-Key was carried out, but its response was too large to store. It is not carried out again.';
  return new ApiError('conflict', detail);
}

/**
 * Returns the record of a response; null for one that is too large. A response is compressed before
 * it is sealed, because sealed bytes do not compress.
 */
async function keptOf(
  { status, body }: StoredAnswer,
  fingerprint: string,
  { key, sealWith }: IdempotentRequest,
): Promise<StoredOutcome | null> {
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
  { state, status, sealed, body }: StoredOutcome,
  { key, sealWith }: IdempotentRequest,
): Promise<StoredAnswer> {
  const bytes = sealed
    ? openBytes(body, { key, caller: sealWith ?? '' })
    : Buffer.from(body, state === 'packed' ? 'base64' : 'utf8');
  if (bytes === null)
    throw new ApiError(
      'idempotency_key_reused',
      'Idempotency-Key: was already used by another caller of this organization',
    );
  const plain = state === 'packed' ? await unpack(bytes, { maxOutputLength: PACKED_BYTES_MAX }) : bytes;
  return { status, body: plain.toString('utf8') };
}
