// Orgs and API keys in JetStream KV, watched into memory: reads never leave the process, a change made anywhere is here in
// milliseconds. Writes are CAS on the revision.
import { type Held, RevisionConflict, WatchedBucket } from '../../ops/watched_bucket.ts';
import type { Log } from '../../ops/streams.ts';
import type { KeyLookup } from '../http/auth.ts';
import type { OrgCredential } from '../http/credential.ts';
import { type KeyRecord, keyRecord, type OrgRecord, orgRecord } from './schema.ts';

/** How often an update is tried against other writers of the same record. */
const UPDATE_TRIES_MAX = 8;

type OnProblem = (problem: string, cause: unknown) => void;

export class OrgStore {
  readonly #bucket: WatchedBucket<OrgRecord>;

  private constructor(bucket: WatchedBucket<OrgRecord>) {
    this.#bucket = bucket;
  }

  static async open(log: Log, onProblem: OnProblem): Promise<OrgStore> {
    const kv = await log.bucket('orgs');
    return new OrgStore(
      await WatchedBucket.open(log.nc, kv, { name: 'orgs', parse: (text) => orgRecord.parse(JSON.parse(text)), onProblem }),
    );
  }

  get(org_id: string): OrgRecord | null {
    return this.#bucket.get(kvKey(org_id)) ?? null;
  }

  /** By org_id, ascending. */
  list(): OrgRecord[] {
    return [...this.#bucket.values()].sort((a, b) => (a.org_id < b.org_id ? -1 : 1));
  }

  /** @throws RevisionConflict when the org exists */
  create(org: OrgRecord): Promise<void> {
    return this.#bucket.create(kvKey(org.org_id), org);
  }

  /** Applies a change to the newest record; null when there is no such org. */
  async change(org_id: string, apply: (org: OrgRecord) => OrgRecord): Promise<OrgRecord | null> {
    for (let tries = 1; ; tries++) {
      const held: Held<OrgRecord> | undefined = this.#bucket.held(kvKey(org_id));
      if (held === undefined) return null;
      const changed = apply(held.value);
      try {
        await this.#bucket.update(kvKey(org_id), changed, held.revision);
        return changed;
      } catch (error) {
        if (!(error instanceof RevisionConflict) || tries >= UPDATE_TRIES_MAX) throw error;
        await this.#movedOn(kvKey(org_id), held.revision);
      }
    }
  }

  close(): void {
    this.#bucket.close();
  }

  /** Resolves when the watch has brought the write that won, or shortly after if it does not. */
  async #movedOn(key: string, revision: number): Promise<void> {
    const moved = Promise.withResolvers<undefined>();
    const timer = setTimeout(moved.resolve, 200, undefined);
    const stop = this.#bucket.onChange((changed) => {
      if (changed === key) moved.resolve(undefined);
    });
    if (this.#bucket.held(key)?.revision !== revision) moved.resolve(undefined);
    await moved.promise;
    stop();
    clearTimeout(timer);
  }
}

export class KeyStore implements KeyLookup {
  readonly #bucket: WatchedBucket<KeyRecord>;
  /** Built once a record, as every request asks. */
  readonly #credentials = new WeakMap<KeyRecord, { hash: string; credential: OrgCredential }>();

  private constructor(bucket: WatchedBucket<KeyRecord>) {
    this.#bucket = bucket;
  }

  static async open(log: Log, onProblem: OnProblem): Promise<KeyStore> {
    const kv = await log.bucket('api_keys');
    return new KeyStore(
      await WatchedBucket.open(log.nc, kv, { name: 'api_keys', parse: (text) => keyRecord.parse(JSON.parse(text)), onProblem }),
    );
  }

  byHash(hash: string): { hash: string; credential: OrgCredential } | null {
    const record = this.#bucket.get(hash);
    if (record === undefined) return null;
    let known = this.#credentials.get(record);
    if (known === undefined) {
      known = { hash, credential: { kind: 'api_key', org_id: record.org_id, key_id: record.id, scopes: new Set(record.scopes) } };
      this.#credentials.set(record, known);
    }
    return known;
  }

  /** Keys of an org, newest first. */
  list(org_id: string): KeyRecord[] {
    return [...this.#bucket.values()]
      .filter((key) => key.org_id === org_id)
      .sort((a, b) => (a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.id < b.id ? -1 : 1));
  }

  /** @throws RevisionConflict when this very key exists */
  create(hash: string, key: KeyRecord): Promise<void> {
    return this.#bucket.create(hash, key);
  }

  /** Takes a key away; false when the org has none of this id. */
  async remove(org_id: string, id: string): Promise<boolean> {
    for (const [hash, held] of this.#bucket.entries()) {
      if (held.value.org_id !== org_id || held.value.id !== id) continue;
      await this.#bucket.delete(hash, held.revision);
      return true;
    }
    return false;
  }

  close(): void {
    this.#bucket.close();
  }
}

/** KV keys take no dot at the ends or twice in a row; org ids may. `=` is in no org id. */
const kvKey = (org_id: string): string => org_id.replaceAll('.', '=2E');
