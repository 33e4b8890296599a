// The limits of API keys by id, and the keys with a budget, as the watched bucket says. Every event
// of a limited key asks for them.
import type { BucketEntry } from '../../../ops/platform/nats/watched_bucket.ts';
import { type KeyLimits, type KeyRecord, limitsOfKey } from '../../../schemas/records/api_key.ts';

type Listener = (org_id: string, key_id: string, isBudgeted: boolean) => void;

const nameOf = (org_id: string, key_id: string): string => `${org_id}\n${key_id}`;

export class KeyLimitIndex {
  readonly #records = new Map<string, KeyRecord>();
  readonly #limits = new Map<string, KeyLimits>();
  readonly #listeners = new Set<Listener>();

  /** Takes the record of a key; null for one that was revoked. */
  put(hash: string, held: BucketEntry<KeyRecord> | null): void {
    const before = this.#records.get(hash);
    if (held === null) {
      if (before === undefined) return;
      this.#records.delete(hash);
      this.#limits.delete(nameOf(before.org_id, before.id));
      if (before.budget !== null) this.#tell(before, false);
      return;
    }
    const { value } = held;
    this.#records.set(hash, value);
    const limits = limitsOfKey(value);
    if (limits === null) this.#limits.delete(nameOf(value.org_id, value.id));
    else this.#limits.set(nameOf(value.org_id, value.id), limits);
    if (value.budget !== null || (before !== undefined && before.budget !== null))
      this.#tell(value, value.budget !== null);
  }

  /** Returns the limits of a key; null for one without any. The same object until they change. */
  limitsById(org_id: string, key_id: string): KeyLimits | null {
    return this.#limits.get(nameOf(org_id, key_id)) ?? null;
  }

  /** Calls back with every key that has a budget, then with each that gets, changes or loses one. */
  followBudgets(listener: Listener): () => void {
    for (const record of this.#records.values()) if (record.budget !== null) listener(record.org_id, record.id, true);
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  #tell({ org_id, id }: KeyRecord, isBudgeted: boolean): void {
    for (const listener of this.#listeners) listener(org_id, id, isBudgeted);
  }
}
