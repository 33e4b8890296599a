// What is remembered under Idempotency-Keys: a KV bucket of small records, grouped by tenant. In: tenant, endpoint, key. Out:
// records by CAS, every call bounded in time. Guarantees: neither key nor tenant can be read from the bucket; where `keep` is
// given, a tenant keeps its newest `keep` records, and some TRIM_EVERY more between two trims; a full bucket is a refusal of its own.
import { hash } from 'node:crypto';
import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { z } from 'zod';
import { isLostWrite } from '../../ops/platform/nats/conflict.ts';
import { nameDigest } from '../../ops/platform/tenant_token.ts';
import { kvHeaders } from '../../ops/platform/nats/kv_headers.ts';
import { ApiError } from './errors.ts';
import type { TenantUse } from './keyed_shares.ts';
import { KeyedWire } from './keyed_wire.ts';

const STORE_FULL = 10077;
/** The store must answer within this, or the request is refused: an idempotent request never hangs. */
export const STORE_MS_MAX = 450;
/**
 * The tenant of every so many-th write of a bucket is trimmed. The revision decides, so it holds across processes and restarts
 * without a count; a prime, so that no rhythm of writers (a lock and its answer, two tenants in turns) always misses one.
 */
export const TRIM_EVERY = 997;
/** A tenant's records are counted within this, or the count is given up. */
const MEASURE_MS_MAX = 2_000;
const RETRY_AFTER = { 'Retry-After': '1' };

/** Where a record lies: token of its tenant, and a digest of endpoint and key. Both are digests, so any text may be given. */
export interface Place {
  tenant: string;
  /** Key in the bucket. */
  at: string;
}

export interface Found {
  text: string;
  revision: number;
}

/** The place of what a tenant does under a key at an endpoint. */
export function placeOf(tenant: string, endpoint: string, key: string): Place {
  const token = nameDigest(tenant);
  return { tenant: token, at: `${token}.${nameDigest(`${endpoint}\0${key}`)}` };
}

/** What proves that two bodies are the same. */
export const fingerprintOf = (body: Uint8Array | string): string => hash('sha256', body, 'base64url');

/** A record read as what it should be. @throws Error without any of its text, which may be an answer */
export function readRecord<T>(schema: z.ZodType<T>, { text }: Found): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('what is kept under an Idempotency-Key is no JSON');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Error('what is kept under an Idempotency-Key is no record', { cause: parsed.error });
  return parsed.data;
}

export interface KeyedStoreDeps {
  /** Name of the bucket. */
  bucket: string;
  nc: NatsConnection;
  kv: KV;
  jsm: Pick<JetStreamManager, 'streams'>;
  /** Records of one tenant that outlive a trim, the newest; null: none is ever trimmed. */
  keep: number | null;
  /** In the place of STORE_MS_MAX. */
  storeMsMax?: number | undefined;
  connected: () => boolean;
  onProblem: (problem: string, cause: unknown) => void;
}

export class KeyedStore {
  readonly #deps: KeyedStoreDeps;
  readonly #wire: KeyedWire;
  readonly #storeMsMax: number;
  #trimming = false;

  constructor(deps: KeyedStoreDeps) {
    this.#deps = deps;
    this.#wire = new KeyedWire(deps.nc, deps.bucket);
    this.#storeMsMax = deps.storeMsMax ?? STORE_MS_MAX;
  }

  /** Refuses at once what could only time out. @throws ApiError upstream_unavailable */
  checkConnected(): void {
    if (!this.#deps.connected()) throw unavailable(undefined);
  }

  /**
   * Writes over a revision; revision 0 asks that the record does not exist.
   * @returns the new revision; null when the record stands at another one
   * @throws ApiError upstream_unavailable, rate_limited when the bucket is full
   */
  async write(place: Place, text: string, revision: number, withinMs = this.#storeMsMax): Promise<number | null> {
    const { kv } = this.#deps;
    let written: number;
    try {
      written =
        revision === 0
          ? await this.#create(place, text, withinMs)
          : await within(kv.update(place.at, text, revision), withinMs);
    } catch (cause) {
      if (isLostWrite(cause)) return null;
      if (cause instanceof JetStreamApiError && cause.code === STORE_FULL && /maximum/.test(cause.message))
        throw full(cause);
      throw unavailable(cause);
    }
    if (written % TRIM_EVERY === 0) void this.#trim(place.tenant);
    return written;
  }

  /** The record, null without one. @throws ApiError upstream_unavailable */
  async read(place: Place): Promise<Found | null> {
    try {
      return await this.#wire.get(place.at, this.#storeMsMax);
    } catch (cause) {
      throw unavailable(cause);
    }
  }

  /** The client's way knows how to write over what was deleted, which is rare. */
  async #create(place: Place, text: string, withinMs: number): Promise<number> {
    try {
      return await this.#wire.create(place.at, text, withinMs);
    } catch (cause) {
      if (!isLostWrite(cause)) throw cause;
      return await within(this.#deps.kv.create(place.at, text), withinMs);
    }
  }

  /** Counts a tenant's records by their headers; the marks of those that were taken away hold nothing. @throws what the client throws */
  async measure(tenant: string): Promise<TenantUse> {
    const use: TenantUse = { bytes: 0, records: 0, oldest_ms: null };
    const entries = await within(kvHeaders(this.#deps.kv, `${tenant}.>`), MEASURE_MS_MAX);
    const giveUp = setTimeout(() => {
      entries.stop(new Error(`no count within ${String(MEASURE_MS_MAX)} ms`));
    }, MEASURE_MS_MAX);
    try {
      for await (const { operation, length, created } of entries) {
        if (operation !== 'PUT') continue;
        use.bytes += length;
        use.records += 1;
        use.oldest_ms = Math.min(use.oldest_ms ?? Infinity, created.getTime());
      }
    } finally {
      clearTimeout(giveUp);
    }
    return use;
  }

  /** Takes a record away if it still stands at this revision. @throws what the client throws */
  async remove(place: Place, revision: number): Promise<void> {
    await within(this.#deps.kv.delete(place.at, { previousSeq: revision }), this.#storeMsMax);
  }

  /** Forgets a tenant's oldest records beyond `keep`. One at a time: a trim holds the bucket up for some milliseconds. */
  async #trim(tenant: string): Promise<void> {
    if (this.#trimming) return;
    const { jsm, bucket, keep, onProblem } = this.#deps;
    if (keep === null) return;
    this.#trimming = true;
    try {
      await jsm.streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.${tenant}.>`, keep });
    } catch (cause) {
      onProblem(`a tenant's oldest records in bucket ${bucket} could not be trimmed; the next trim will`, cause);
    } finally {
      this.#trimming = false;
    }
  }
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The idempotency store cannot be reached. Try again.', { cause });
}

function full(cause: unknown): ApiError {
  return new ApiError(
    'rate_limited',
    'The idempotency store is full. Try again later, or without an Idempotency-Key.',
    {
      headers: { 'Retry-After': '60' },
      cause,
    },
  );
}

function within<T>(work: Promise<T>, ms: number): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`no answer within ${String(ms)} ms`));
    }, ms);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}

/** Another request with this key came first and has not ended. */
export function inProgress(detail = 'The first request with this Idempotency-Key is still running.'): ApiError {
  return new ApiError('idempotency_in_progress', detail, { headers: RETRY_AFTER });
}

export function reused(): ApiError {
  return new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used with another body');
}

/** Requests with a key that one process works on: of one tenant, and in all. */
export const RUNNING_TENANT_MAX = 1000;
export const RUNNING_MAX = 10_000;

/** The keyed requests that run in this process: their number is bounded, and a second one with the same key need not ask the store. */
export class Running {
  readonly #fingerprints = new Map<string, string>();
  readonly #ofTenant = new Map<string, number>();

  /**
   * Begins a request; call what it gives back once, at its end.
   * @throws ApiError idempotency_in_progress, idempotency_key_reused, rate_limited
   */
  enter(place: Place, fingerprint: string): () => void {
    const running = this.#fingerprints.get(place.at);
    if (running !== undefined) throw running === fingerprint ? inProgress() : reused();
    const ofTenant = this.#ofTenant.get(place.tenant) ?? 0;
    if (ofTenant >= RUNNING_TENANT_MAX || this.#fingerprints.size >= RUNNING_MAX)
      throw new ApiError(
        'rate_limited',
        'Too many requests with an Idempotency-Key are running. Send it again shortly.',
        {
          headers: RETRY_AFTER,
        },
      );
    this.#fingerprints.set(place.at, fingerprint);
    this.#ofTenant.set(place.tenant, ofTenant + 1);
    return () => {
      if (!this.#fingerprints.delete(place.at)) return;
      const left = (this.#ofTenant.get(place.tenant) ?? 1) - 1;
      if (left === 0) this.#ofTenant.delete(place.tenant);
      else this.#ofTenant.set(place.tenant, left);
    };
  }
}
