// Values whose data is to be erased, sealed, from the request until the work is done: the API leaves them, a worker takes them.
import { randomBytes } from 'node:crypto';
import type { KV } from '@nats-io/kv';
import { eraseAsk, eraseAskContext, eraseAskKey, type EraseAsk } from '../../schemas/records/erasure.ts';
import type { Sealer } from '../platform/sealing.ts';
import type { Log } from '../platform/nats/open_log.ts';

/** A value to look for, or what came of it. */
export type EraseAskState = { value: string; result: null } | { value: null; result: Record<string, unknown> };

export class EraseAsks {
  readonly #kv: KV;
  readonly #sealer: Sealer;

  private constructor(kv: KV, sealer: Sealer) {
    this.#kv = kv;
    this.#sealer = sealer;
  }

  static async open(log: Log, sealer: Sealer): Promise<EraseAsks> {
    return new EraseAsks(await log.bucket('erase_asks'), sealer);
  }

  /** @returns the id under which the value waits */
  async create(org_id: string, value: string): Promise<string> {
    const ask_id = randomBytes(16).toString('hex');
    await this.#kv.create(
      eraseAskKey(org_id, ask_id),
      encoded({ sealed: this.#sealer.seal(value, eraseAskContext(org_id)), result: null }),
    );
    return ask_id;
  }

  /** null when it has waited for too long. @throws SealBroken when the key is another one by now */
  async read(org_id: string, ask_id: string): Promise<EraseAskState | null> {
    const entry = await this.#kv.get(eraseAskKey(org_id, ask_id));
    if (entry?.operation !== 'PUT') return null;
    const { sealed, result } = eraseAsk.parse(entry.json());
    if (result !== null) return { value: null, result };
    return sealed === null ? null : { value: this.#sealer.open(sealed, eraseAskContext(org_id)), result: null };
  }

  /** Writes what was done in the place of the value: who begins the work again finds that it is done. */
  async settle(org_id: string, ask_id: string, result: Record<string, unknown>): Promise<void> {
    await this.#kv.put(eraseAskKey(org_id, ask_id), encoded({ sealed: null, result }));
  }
}

const encoded = (ask: EraseAsk): string => JSON.stringify(ask);
