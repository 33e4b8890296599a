// An index by organization over a watched bucket whose keys begin with orgKey(org_id). It follows the bucket's changes,
// so listeners that subscribe after its construction find it current.
import { orgKey } from '../../../schemas/records/org.ts';
import type { WatchedBucket } from './watched_bucket.ts';

export class OrgIndex<T> {
  readonly #orgs = new Map<string, Map<string, T>>();

  constructor(bucket: Pick<WatchedBucket<T>, 'entries' | 'onChange'>) {
    for (const [key, { value }] of bucket.entries()) this.#put(key, value);
    bucket.onChange((key, held) => {
      if (held === null) this.#delete(key);
      else this.#put(key, held.value);
    });
  }

  /** Returns an organization's records by key. The map is the index's own and changes with the bucket. */
  of(org_id: string): ReadonlyMap<string, T> {
    return this.#orgs.size === 0 ? NO_RECORDS : (this.#orgs.get(orgKey(org_id)) ?? NO_RECORDS);
  }

  #put(key: string, value: T): void {
    const token = orgTokenOf(key);
    let records = this.#orgs.get(token);
    if (records === undefined) this.#orgs.set(token, (records = new Map<string, T>()));
    records.set(key, value);
  }

  #delete(key: string): void {
    const token = orgTokenOf(key);
    const records = this.#orgs.get(token);
    records?.delete(key);
    if (records?.size === 0) this.#orgs.delete(token);
  }
}

const NO_RECORDS: ReadonlyMap<string, never> = new Map<string, never>();

/** Returns the first token of a key: the organization, as orgKey writes it. */
export function orgTokenOf(key: string): string {
  const end = key.indexOf('.');
  return end === -1 ? key : key.slice(0, end);
}
