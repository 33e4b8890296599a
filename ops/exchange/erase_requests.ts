// Holds the values whose data is to be erased, sealed, from the request until the erasure is done:
// the API writes them, a worker reads them.
import { randomBytes } from 'node:crypto';
import type { KV } from '@nats-io/kv';
import { erasureRequest, eraseAskContext, eraseAskKey, type ErasureRequest } from '../../schemas/records/erasure.ts';
import type { Sealer } from '../platform/sealing.ts';
import type { Log } from '../platform/nats/open_log.ts';

/** The value to look for, or the result of the erasure. */
export type ErasureRequestState = { value: string; result: null } | { value: null; result: Record<string, unknown> };

export class ErasureRequests {
  readonly #kv: KV;
  readonly #sealer: Sealer;

  private constructor(kv: KV, sealer: Sealer) {
    this.#kv = kv;
    this.#sealer = sealer;
  }

  static async open(log: Log, sealer: Sealer): Promise<ErasureRequests> {
    return new ErasureRequests(await log.bucket('erase_asks'), sealer);
  }

  /** Stores a value. @returns the id of the request, under which a worker reads the value */
  async create(org_id: string, value: string): Promise<string> {
    const ask_id = randomBytes(16).toString('hex');
    await this.#kv.create(
      eraseAskKey(org_id, ask_id),
      encoded({ sealed: this.#sealer.seal(value, eraseAskContext(org_id)), result: null }),
    );
    return ask_id;
  }

  /**
   * Returns a request's value or result; null when it has expired. @throws SealBroken when the
   * encryption key has changed
   */
  async read(org_id: string, ask_id: string): Promise<ErasureRequestState | null> {
    const entry = await this.#kv.get(eraseAskKey(org_id, ask_id));
    if (entry?.operation !== 'PUT') return null;
    const { sealed, result } = erasureRequest.parse(entry.json());
    if (result !== null) return { value: null, result };
    return sealed === null ? null : { value: this.#sealer.open(sealed, eraseAskContext(org_id)), result: null };
  }

  /** Replaces the value by the result, so that a worker which repeats the work finds it done. */
  async settle(org_id: string, ask_id: string, result: Record<string, unknown>): Promise<void> {
    await this.#kv.put(eraseAskKey(org_id, ask_id), encoded({ sealed: null, result }));
  }
}

const encoded = (ask: ErasureRequest): string => JSON.stringify(ask);
