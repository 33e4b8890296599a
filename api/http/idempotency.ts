// Idempotency-Key: the same POST sent again gets the first answer and does nothing twice, across processes and restarts.
// One KV record a key: made first as a lock (only one request wins), then holding the answer for 24 h. A lock carries a
// deadline that its holder keeps moving, so that a holder that died blocks for seconds, not for a day.
import { createCipheriv, createDecipheriv, hash, randomBytes, randomUUID } from 'node:crypto';
import { JetStreamApiError } from '@nats-io/jetstream';
import type { KV } from '@nats-io/kv';
import { z } from 'zod';
import { ApiError } from './errors.ts';

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** JetStream's error code of a CAS that lost. */
const WRONG_LAST_REVISION = 10071;
/** A lock that was not renewed for this long belongs to a process that died. */
const LOCK_MS = 10_000;
const RENEW_MS = 3_000;
/** The store must answer within this, or the request is refused: an idempotent request never hangs. */
const STORE_MS_MAX = 450;
/** Larger answers are not kept; no route's answer to a repeatable POST comes near it. */
const ANSWER_BYTES_MAX = 1024 * 1024;

const record = z.discriminatedUnion('state', [
  z.object({ state: z.literal('running'), fingerprint: z.string(), holder: z.string(), deadline: z.number() }),
  z.object({ state: z.literal('done'), fingerprint: z.string(), status: z.int(), body: z.string(), sealed: z.boolean() }),
]);
type IdempotencyRecord = z.infer<typeof record>;

/** An answer that is kept. */
export interface KeptAnswer {
  status: number;
  body: string;
}

export interface IdempotentRequest {
  org_id: string;
  /** Method and path. */
  endpoint: string;
  /** A UUID, as checked by `idempotencyKey`. */
  key: string;
  body: Uint8Array | string;
  /** Set where the answer holds a secret: the caller's credential, which then seals what is kept. */
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

export class Idempotency {
  readonly #kv: KV;
  readonly #now: () => number;
  readonly #connected: () => boolean;
  readonly #onProblem: (problem: string, cause: unknown) => void;

  constructor(deps: { kv: KV; now: () => number; connected: () => boolean; onProblem: (problem: string, cause: unknown) => void }) {
    this.#kv = deps.kv;
    this.#now = deps.now;
    this.#connected = deps.connected;
    this.#onProblem = deps.onProblem;
  }

  /**
   * Takes the key, or gives back the answer that it already has.
   * @throws ApiError idempotency_key_reused, idempotency_in_progress, upstream_unavailable
   */
  async begin(request: IdempotentRequest): Promise<{ lock: IdempotencyLock } | { replay: KeptAnswer }> {
    if (!this.#connected()) throw unavailable(undefined);
    const storeKey = hash('sha256', `${request.org_id}\0${request.endpoint}\0${request.key}`, 'hex').slice(0, 40);
    const fingerprint = hash('sha256', request.body, 'hex');
    const mine: IdempotencyRecord = { state: 'running', fingerprint, holder: randomUUID(), deadline: this.#now() + LOCK_MS };
    const revision = await this.#write(storeKey, mine, 0);
    if (revision !== null) return { lock: this.#lock(storeKey, mine, revision, request) };
    const found = await this.#read(storeKey);
    // Gone between the two calls: its holder failed and released it just now.
    if (found === null)
      throw new ApiError('idempotency_in_progress', 'The first request with this Idempotency-Key has just ended. Send it again.', {
        headers: { 'Retry-After': '1' },
      });
    if (found.record.fingerprint !== fingerprint)
      throw new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used with another body');
    if (found.record.state === 'done') return { replay: openAnswer(found.record, request) };
    if (found.record.deadline < this.#now()) {
      const taken = await this.#write(storeKey, mine, found.revision);
      if (taken !== null) return { lock: this.#lock(storeKey, mine, taken, request) };
    }
    throw new ApiError('idempotency_in_progress', 'The first request with this Idempotency-Key is still running.', {
      headers: { 'Retry-After': '1' },
    });
  }

  #lock(
    storeKey: string,
    mine: Extract<IdempotencyRecord, { state: 'running' }>,
    first: number,
    request: IdempotentRequest,
  ): IdempotencyLock {
    let revision: number | null = first;
    let last: Promise<void> = Promise.resolve();
    // Writes follow each other, as each needs the revision of the one before. A write that lost means that the lock is another's now.
    const write = (next: IdempotencyRecord | null): Promise<void> => {
      last = last.then(async () => {
        if (revision === null) return;
        try {
          if (next === null) {
            await withinTime(this.#kv.delete(storeKey, { previousSeq: revision }));
            revision = null;
          } else {
            revision = await this.#write(storeKey, next, revision);
          }
        } catch (cause) {
          this.#onProblem('an idempotency record could not be written; a repeat of its request would run again', cause);
        }
      });
      return last;
    };
    const renewal = setInterval(() => void write({ ...mine, deadline: this.#now() + LOCK_MS }), RENEW_MS);
    renewal.unref();
    return {
      keep: (answer) => {
        clearInterval(renewal);
        return write(answer.body.length > ANSWER_BYTES_MAX ? null : sealAnswer(answer, mine.fingerprint, request));
      },
      release: () => {
        clearInterval(renewal);
        return write(null);
      },
    };
  }

  /** The new revision; null when the key stands at another one. Revision 0 asks that it does not exist. */
  async #write(storeKey: string, value: IdempotencyRecord, revision: number): Promise<number | null> {
    const text = JSON.stringify(value);
    try {
      return await withinTime(revision === 0 ? this.#kv.create(storeKey, text) : this.#kv.update(storeKey, text, revision));
    } catch (cause) {
      if (cause instanceof JetStreamApiError && cause.code === WRONG_LAST_REVISION) return null;
      throw unavailable(cause);
    }
  }

  async #read(storeKey: string): Promise<{ record: IdempotencyRecord; revision: number } | null> {
    let entry;
    try {
      entry = await withinTime(this.#kv.get(storeKey));
    } catch (cause) {
      throw unavailable(cause);
    }
    if (entry?.operation !== 'PUT') return null;
    return { record: record.parse(JSON.parse(entry.string())), revision: entry.revision };
  }
}

function unavailable(cause: unknown): ApiError {
  return new ApiError('upstream_unavailable', 'The idempotency store cannot be reached. Try again.', { cause });
}

function withinTime<T>(work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      reject(new Error(`no answer within ${String(STORE_MS_MAX)} ms`));
    }, STORE_MS_MAX);
    work.then(resolve, reject).finally(() => {
      clearTimeout(timer);
    });
  });
}

/** The store knows neither the Idempotency-Key nor the credential in clear, so what they seal cannot be read from it. */
function sealingKey(request: IdempotentRequest): Buffer {
  return hash('sha256', `sealed answer\0${request.sealWith ?? ''}\0${request.key}`, 'buffer');
}

function sealAnswer(answer: KeptAnswer, fingerprint: string, request: IdempotentRequest): IdempotencyRecord {
  const sealed = request.sealWith !== undefined;
  if (!sealed) return { state: 'done', fingerprint, sealed, ...answer };
  const iv = randomBytes(12);
  const cipher = createCipheriv('aes-256-gcm', sealingKey(request), iv);
  const text = Buffer.concat([cipher.update(answer.body, 'utf8'), cipher.final()]);
  return {
    state: 'done',
    fingerprint,
    sealed,
    status: answer.status,
    body: Buffer.concat([iv, cipher.getAuthTag(), text]).toString('base64'),
  };
}

function openAnswer(kept: Extract<IdempotencyRecord, { state: 'done' }>, request: IdempotentRequest): KeptAnswer {
  if (!kept.sealed) return { status: kept.status, body: kept.body };
  const bytes = Buffer.from(kept.body, 'base64');
  const decipher = createDecipheriv('aes-256-gcm', sealingKey(request), bytes.subarray(0, 12));
  decipher.setAuthTag(bytes.subarray(12, 28));
  try {
    return { status: kept.status, body: Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]).toString('utf8') };
  } catch (cause) {
    throw new ApiError('idempotency_key_reused', 'Idempotency-Key: was already used by another credential of this org', { cause });
  }
}
