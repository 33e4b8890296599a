// Organizations and API keys in JetStream KV, watched into memory: reads never leave the process,
// and a change by any process arrives within milliseconds. Writes compare-and-swap on the revision.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { Turns } from '../../../ops/platform/turns.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import type { WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import type { KeyLimits, KeyRecord } from '../../../schemas/records/api_key.ts';
import { type MemberRecord, memberSince, orgKey, type OrgRecord } from '../../../schemas/records/org.ts';
import type { KeyLookup, Memberships } from '../../http/auth.ts';
import type { ApiKeyCredential } from '../../http/credential.ts';
import { keyStatus, type KeyStatus, type Role } from '../../http/permissions.ts';
import { KeyLimitIndex } from './key_limit_index.ts';
import { MemberIndex } from './member_index.ts';

export class OrgStore implements Memberships {
  readonly #bucket: WatchedBucket<OrgRecord>;
  readonly #isDeleted: (org_id: string) => boolean;
  readonly #turns = new Turns();
  readonly #index = new MemberIndex();

  private constructor(bucket: WatchedBucket<OrgRecord>, isDeleted: (org_id: string) => boolean) {
    this.#bucket = bucket;
    this.#isDeleted = isDeleted;
    bucket.onChange((key, held) => {
      this.#index.put(key, held?.value ?? null);
    });
    for (const [key, { value }] of bucket.entries()) this.#index.put(key, value);
  }

  /**
   * @param isDeleted returns whether an organization is being deleted; it then does not exist for
   * any caller
   */
  static async open(log: Log, onProblem: ReportProblem, isDeleted: (org_id: string) => boolean): Promise<OrgStore> {
    return new OrgStore(await watch(log, 'orgs', onProblem), isDeleted);
  }

  get(org_id: string): OrgRecord | null {
    return this.#isDeleted(org_id) ? null : (this.#bucket.get(orgKey(org_id)) ?? null);
  }

  /** Returns all organizations, sorted by org_id. */
  list(): OrgRecord[] {
    return [...this.#bucket.values()]
      .filter(({ org_id }) => !this.#isDeleted(org_id))
      .sort((a, b) => (a.org_id < b.org_id ? -1 : 1));
  }

  /** Returns an active member; null if the user is not one, or if there is no such organization. */
  memberOf(org_id: string, user_id: string): MemberRecord | null {
    const org = this.get(org_id);
    return org === null ? null : this.#index.member(org, user_id);
  }

  roleOf(org_id: string, user_id: string): Role | null {
    return this.memberOf(org_id, user_id)?.role ?? null;
  }

  /** Returns the organizations in which a user is an active member, sorted by org_id. */
  orgsOf(user_id: string): { org_id: string; name: string; role: Role }[] {
    return this.#index
      .orgIdsOf(user_id)
      .flatMap((org_id) => {
        const org = this.get(org_id);
        const member = org === null ? null : this.#index.member(org, user_id);
        return org === null || member === null ? [] : [{ org_id, name: org.name, role: member.role }];
      })
      .sort((a, b) => (a.org_id < b.org_id ? -1 : 1));
  }

  /** @throws RevisionConflict when the organization exists */
  create(org: OrgRecord): Promise<void> {
    return this.#bucket.create(orgKey(org.org_id), org);
  }

  /**
   * Applies a change to the newest record. `apply` may be called several times; it returns its
   * argument to change nothing, and throws to reject the change.
   *
   * @returns what `apply` returned for the change that was written; null if there is no such
   * organization
   * @throws what `apply` throws; Error when the record cannot be written
   */
  async change<R extends { org: OrgRecord }>(org_id: string, apply: (org: OrgRecord) => R): Promise<R | null> {
    // The last call belongs to the write that succeeded.
    const last: { result: R | null } = { result: null };
    await this.#turns.take(org_id, () =>
      this.#bucket.change(orgKey(org_id), (org) => {
        last.result = org === undefined || this.#isDeleted(org_id) ? null : apply(org);
        return last.result === null || last.result.org === org ? null : last.result.org;
      }),
    );
    return last.result;
  }

  close(): void {
    this.#bucket.close();
  }
}

/** Records of other stores that are read at every use of a key. */
export interface KeyLookups {
  /** Returns the active member of an organization with this user_id, or null. */
  memberOf: (org_id: string, user_id: string) => MemberRecord | null;
  /** Returns whether an organization is being deleted; its keys are then rejected. */
  isDeleted: (org_id: string) => boolean;
  /** Milliseconds since the epoch. */
  now: () => number;
}

interface KnownKey {
  hash: string;
  credential: ApiKeyCredential;
  status: KeyStatus;
}

/**
 * API keys. A key that belongs to a member is limited to the member's permissions at the moment of
 * use, so that a demotion or removal takes effect with the write of the organization's record,
 * whatever happens to the process that made it.
 */
export class KeyStore implements KeyLookup {
  readonly #bucket: WatchedBucket<KeyRecord>;
  readonly #lookups: KeyLookups;
  /** Computed once for each record and role of its member, since every request reads it. */
  readonly #known = new WeakMap<KeyRecord, KnownKey>();
  readonly #limits = new KeyLimitIndex();

  private constructor(bucket: WatchedBucket<KeyRecord>, lookups: KeyLookups) {
    this.#bucket = bucket;
    this.#lookups = lookups;
    bucket.onChange((hash, held) => {
      this.#limits.put(hash, held);
    });
    for (const [hash, held] of bucket.entries()) this.#limits.put(hash, held);
  }

  static async open(log: Log, onProblem: ReportProblem, lookups: KeyLookups): Promise<KeyStore> {
    return new KeyStore(await watch(log, 'api_keys', onProblem), lookups);
  }

  byHash(hash: string): { hash: string; credential: ApiKeyCredential } | null {
    const record = this.#bucket.get(hash);
    if (record === undefined || this.#lookups.isDeleted(record.org_id) || this.#isExpired(record)) return null;
    const role = this.#roleBehind(record);
    if (role === null) return null;
    let known = this.#known.get(record);
    if (known === undefined || known.credential.maker?.role !== role) {
      known = knownKeyOf(hash, record, { role, limits: this.limitsById(record.org_id, record.id) });
      this.#known.set(record, known);
    }
    return known.status === 'revoked' ? null : known;
  }

  /** Returns the current status of a key. */
  statusOf(key: KeyRecord): KeyStatus | 'expired' {
    return this.#isExpired(key) ? 'expired' : keyStatus(new Set(key.scopes), this.#roleBehind(key));
  }

  limitsById(org_id: string, key_id: string): KeyLimits | null {
    return this.#limits.limitsById(org_id, key_id);
  }

  followBudgets(listener: Parameters<KeyLimitIndex['followBudgets']>[0]): () => void {
    return this.#limits.followBudgets(listener);
  }

  /** Returns the keys of an organization, newest first. */
  list(org_id: string): KeyRecord[] {
    return [...this.#bucket.values()]
      .filter((key) => key.org_id === org_id)
      .sort((a, b) => (a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.id < b.id ? -1 : 1));
  }

  /** @throws RevisionConflict when this key exists */
  create(hash: string, key: KeyRecord): Promise<void> {
    return this.#bucket.create(hash, key);
  }

  /** @throws RevisionConflict when this key exists or was revoked */
  createOnce(hash: string, key: KeyRecord): Promise<void> {
    return this.#bucket.createOnce(hash, key);
  }

  /** Resolves with whether any process ever created this key, even if it is revoked by now. */
  wasMade(hash: string): Promise<boolean> {
    return this.#bucket.hasEverHeld(hash);
  }

  /**
   * Applies a change to the newest record of a key.
   * @returns the records before and after; null if the organization has no key with this id
   * @throws Error when the record cannot be written
   */
  async change(
    org_id: string,
    id: string,
    apply: (record: KeyRecord) => KeyRecord,
  ): Promise<{ before: KeyRecord; after: KeyRecord } | null> {
    const found = [...this.#bucket.entries()].find(([, { value }]) => value.org_id === org_id && value.id === id);
    if (found === undefined) return null;
    // The last call belongs to the write that succeeded.
    const last: { before: KeyRecord | null } = { before: null };
    const after = await this.#bucket.change(found[0], (record) => {
      last.before = record ?? null;
      return record === undefined ? null : apply(record);
    });
    return last.before === null || after === undefined ? null : { before: last.before, after };
  }

  /** Deletes a key; resolves with false if the organization has none with this id. */
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

  #isExpired({ expires_at }: KeyRecord): boolean {
    return expires_at !== null && Date.parse(expires_at) <= this.#lookups.now();
  }

  /**
   * Returns the role of the member behind a key; null if the membership has ended, undefined if the
   * key belongs to no member.
   */
  #roleBehind({ org_id, created_by }: KeyRecord): Role | null | undefined {
    if (created_by === null) return undefined;
    const member = this.#lookups.memberOf(org_id, created_by.user_id);
    return member === null || memberSince(member) !== created_by.member_since ? null : member.role;
  }
}

function knownKeyOf(
  hash: string,
  { org_id, id, scopes, created_by, capture }: KeyRecord,
  { role, limits }: { role: Role | undefined; limits: KeyLimits | null },
): KnownKey {
  const held = new Set(scopes);
  const maker = created_by === null || role === undefined ? {} : { maker: { ...created_by, role } };
  return {
    hash,
    credential: {
      kind: 'api_key',
      org_id,
      key_id: id,
      scopes: held,
      ...(limits === null ? {} : { limits }),
      ...(capture === undefined ? {} : { capture }),
      ...maker,
    },
    status: keyStatus(held, role),
  };
}
