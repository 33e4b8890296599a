// The store behind Idempotency-Keys: a KV bucket of small records, grouped by tenant. Takes tenant,
// endpoint and key; reads and writes records by compare-and-set, every call bounded in time.
// Neither key nor tenant can be read from the bucket. Where `keep` is given, a tenant keeps its
// newest `keep` records, and about TRIM_EVERY more between two trims. A full bucket is a rejection
// of its own.
import { hash } from 'node:crypto';
import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { z } from 'zod';
import type { ReportProblem } from '../../ops/platform/report_problem.ts';
import { isLostWrite } from '../../ops/platform/nats/conflict.ts';
import { nameDigest } from '../../ops/platform/tenant_token.ts';
import { kvHeaders } from '../../ops/platform/nats/kv_headers.ts';
import { ApiError } from './errors.ts';
import type { TenantUse } from './keyed_shares.ts';
import { KeyedWire } from './keyed_wire.ts';

const STORE_FULL = 10077;
/**
 * Maximum milliseconds for a call of the store; after them the request is rejected, so that none
 * hangs.
 */
export const STORE_MS_MAX = 450;
/**
 * Number of writes to a bucket between trims, each of the tenant of that write. The revision
 * decides, so that it works across processes and restarts without a count. A prime, so that no
 * rhythm of writers (a lock and its response, two tenants in turns) always misses one.
 */
export const TRIM_EVERY = 997;
/** Maximum milliseconds for counting a tenant's records. */
const MEASURE_MS_MAX = 2_000;
const RETRY_AFTER = { 'Retry-After': '1' };

/**
 * The place of a record: token of its tenant, and a digest of endpoint and key. Both are digests,
 * so any text may be given.
 */
export interface Place {
  tenant: string;
  /** Key in the bucket. */
  at: string;
}

export interface Found {
  text: string;
  revision: number;
}

/** Returns the place of a tenant's record for a key and an endpoint. */
export function placeOf(tenant: string, endpoint: string, key: string): Place {
  const token = nameDigest(tenant);
  return { tenant: token, at: `${token}.${nameDigest(`${endpoint}\0${key}`)}` };
}

/** Returns a digest that proves that two bodies are the same. */
export const fingerprintOf = (body: Uint8Array | string): string => hash('sha256', body, 'base64url');

/**
 * Returns a record, parsed and checked.
 * @throws Error without any of its text, which may be a response
 */
export function readRecord<T>(schema: z.ZodType<T>, { text }: Found): T {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error('the record of an Idempotency-Key is not JSON');
  }
  const parsed = schema.safeParse(value);
  if (!parsed.success) throw new Error('the record of an Idempotency-Key is invalid', { cause: parsed.error });
  return parsed.data;
}

export interface KeyedStoreDeps {
  /** Name of the bucket. */
  bucket: string;
  nc: NatsConnection;
  kv: KV;
  jsm: Pick<JetStreamManager, 'streams'>;
  /** Number of a tenant's newest records that a trim keeps; null: nothing is trimmed. */
  keep: number | null;
  /** In place of STORE_MS_MAX. */
  storeMsMax?: number | undefined;
  connected: () => boolean;
  onProblem: ReportProblem;
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

  /**
   * Rejects at once what could only time out.
   * @throws ApiError upstream_unavailable
   */
  checkConnected(): void {
    if (!this.#deps.connected()) throw unavailable(undefined);
  }

  /**
   * Writes a record over a revision; revision 0 requires that there is no record.
   * @returns the new revision; null when the record has another one
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

  /**
   * Returns the record; null without one.
   * @throws ApiError upstream_unavailable
   */
  async read(place: Place): Promise<Found | null> {
    try {
      return await this.#wire.get(place.at, this.#storeMsMax);
    } catch (cause) {
      throw unavailable(cause);
    }
  }

  /** Only the client can write over a deleted record, which is rare. */
  async #create(place: Place, text: string, withinMs: number): Promise<number> {
    try {
      return await this.#wire.create(place.at, text, withinMs);
    } catch (cause) {
      if (!isLostWrite(cause)) throw cause;
      return await within(this.#deps.kv.create(place.at, text), withinMs);
    }
  }

  /**
   * Counts a tenant's records by their headers; delete markers count as nothing.
   * @throws what the client throws
   */
  async measure(tenant: string): Promise<TenantUse> {
    const use: TenantUse = { bytes: 0, records: 0, oldest_ms: null };
    const entries = await within(kvHeaders(this.#deps.kv, `${tenant}.>`), MEASURE_MS_MAX);
    const giveUp = setTimeout(() => {
      entries.stop(new Error(`no count within ${MEASURE_MS_MAX} ms`));
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

  /**
   * Removes a record if it still has this revision.
   * @throws what the client throws
   */
  async remove(place: Place, revision: number): Promise<void> {
    await within(this.#deps.kv.delete(place.at, { previousSeq: revision }), this.#storeMsMax);
  }

  /**
   * Removes a tenant's oldest records beyond `keep`. One trim runs at a time: it blocks the bucket
   * for some milliseconds.
   */
  async #trim(tenant: string): Promise<void> {
    if (this.#trimming) return;
    const { jsm, bucket, keep, onProblem } = this.#deps;
    if (keep === null) return;
    this.#trimming = true;
    try {
      await jsm.streams.purge(`KV_${bucket}`, { filter: `$KV.${bucket}.${tenant}.>`, keep });
    } catch (cause) {
      onProblem(`a tenant's oldest records in bucket ${bucket} could not be trimmed; the next trim retries`, cause);
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
      reject(new Error(`no answer within ${ms} ms`));
    }, ms);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}

/** Returns the error for a key whose first request has not ended. */
export function inProgress(detail = 'The first request with this Idempotency-Key is still running.'): ApiError {
  return new ApiError('idempotency_in_progress', detail, { headers: RETRY_AFTER });
}

export function reused(): ApiError {
  return new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used with another body');
}

/** Maximum number of keyed requests in progress in one process, for one tenant and in total. */
export const RUNNING_TENANT_MAX = 1000;
export const RUNNING_MAX = 10_000;

/**
 * The keyed requests in progress in this process: their number is bounded, and a second one with
 * the same key need not ask the store.
 */
export class Running {
  readonly #fingerprints = new Map<string, string>();
  readonly #ofTenant = new Map<string, number>();

  /**
   * Begins a request. The caller calls the returned function once, at the end.
   * @throws ApiError idempotency_in_progress, idempotency_key_reused, rate_limited
   */
  enter(place: Place, fingerprint: string): () => void {
    const running = this.#fingerprints.get(place.at);
    if (running !== undefined) throw running === fingerprint ? inProgress() : reused();
    const ofTenant = this.#ofTenant.get(place.tenant) ?? 0;
    if (ofTenant >= RUNNING_TENANT_MAX || this.#fingerprints.size >= RUNNING_MAX)
      throw new ApiError(
        'rate_limited',
        'Too many requests with an Idempotency-Key are in progress. Retry after the number of seconds in Retry-After.',
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
