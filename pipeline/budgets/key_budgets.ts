// The API keys that have a budget of their own, as the watched bucket of keys says. Landings report
// the use of these keys apart.
import type { WatchedBucket } from '../../ops/platform/nats/watched_bucket.ts';
import type { KeyRecord } from '../../schemas/records/api_key.ts';
import { keyAccount } from '../../schemas/accounts.ts';

export class KeyBudgets {
  /** Accounts of keys with a budget, by the hash of the key. */
  readonly #accounts = new Map<string, string>();
  readonly #budgeted = new Set<string>();

  constructor(keys: Pick<WatchedBucket<KeyRecord>, 'entries' | 'onChange'>) {
    keys.onChange((hash, held) => {
      this.#put(hash, held?.value ?? null);
    });
    for (const [hash, { value }] of keys.entries()) this.#put(hash, value);
  }

  /** Returns true for a key with a budget. */
  has(org_id: string, key_id: string): boolean {
    return key_id !== '' && this.#budgeted.has(keyAccount(org_id, key_id));
  }

  #put(hash: string, record: KeyRecord | null): void {
    this.#budgeted.delete(this.#accounts.get(hash) ?? '');
    if (record === null) {
      this.#accounts.delete(hash);
      return;
    }
    const account = keyAccount(record.org_id, record.id);
    this.#accounts.set(hash, account);
    if (record.budget !== null) this.#budgeted.add(account);
  }
}
