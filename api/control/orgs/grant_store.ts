// Grants in JetStream KV, one key each, watched into memory: asked on every request that a member's role alone does not let
// in. Guarantees: a grant that has expired, or whose member has left, allows nothing from that moment on, whether or not
// somebody has deleted it.
import { RevisionConflict, WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { type MemberRecord, orgKey } from '../../../schemas/records/org.ts';
import type { GrantLookup, Resource } from '../../http/auth.ts';
import type { Permission } from '../../http/permissions.ts';
import { type GrantRecord, grantRecord } from './grant_schema.ts';

export interface GrantStoreDeps {
  log: Log;
  /** Returns an active member, or null. */
  memberOf: (org_id: string, user_id: string) => MemberRecord | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: (problem: string, cause: unknown) => void;
}

export class GrantStore implements GrantLookup {
  readonly #bucket: WatchedBucket<GrantRecord>;
  readonly #deps: GrantStoreDeps;
  /** By org, then by KV key. */
  readonly #byOrg = new Map<string, Map<string, GrantRecord>>();

  private constructor(bucket: WatchedBucket<GrantRecord>, deps: GrantStoreDeps) {
    this.#bucket = bucket;
    this.#deps = deps;
    bucket.onChange((key, held) => {
      this.#put(key, held?.value ?? null);
    });
    for (const [key, { value }] of bucket.entries()) this.#put(key, value);
  }

  static async open(deps: GrantStoreDeps): Promise<GrantStore> {
    const kv = await deps.log.bucket('grants');
    const parse = (text: string) => grantRecord.parse(JSON.parse(text));
    return new GrantStore(
      await WatchedBucket.open(deps.log.nc, kv, { name: 'grants', parse, onProblem: deps.onProblem }),
      deps,
    );
  }

  allows(org_id: string, user_id: string, resource: Resource, permission: Permission): boolean {
    for (const grant of this.#byOrg.get(orgKey(org_id))?.values() ?? []) {
      if (grant.user_id !== user_id || grant.resource.id !== resource.id || grant.resource.type !== resource.type)
        continue;
      if (grant.permissions.some((given) => given === permission) && this.#holds(grant)) return true;
    }
    return false;
  }

  /** Returns the grants in force of an organization, newest first. */
  list(org_id: string): GrantRecord[] {
    return this.#all(org_id)
      .filter((grant) => this.#holds(grant))
      .sort((a, b) =>
        a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.grant_id < b.grant_id ? -1 : 1,
      );
  }

  create(grant: GrantRecord): Promise<void> {
    return this.#bucket.create(keyOf(grant), grant);
  }

  /**
   * Deletes a grant in force. @returns the grant, or null if the organization has none with this id
   */
  async remove(org_id: string, grant_id: string): Promise<GrantRecord | null> {
    const grant = this.#byOrg.get(orgKey(org_id))?.get(keyOf({ org_id, grant_id }));
    if (grant === undefined || !this.#holds(grant)) return null;
    await this.#delete(grant);
    return grant;
  }

  /**
   * Deletes the organization's grants on one resource, expired ones included. @returns the number
   * of deleted grants
   */
  async removeOn(org_id: string, resource: Resource): Promise<number> {
    const grants = this.#all(org_id).filter(
      (grant) => grant.resource.type === resource.type && grant.resource.id === resource.id,
    );
    for (const grant of grants) await this.#delete(grant);
    return grants.length;
  }

  /** Deletes the organization's grants that are no longer in force. */
  async sweep(org_id: string): Promise<void> {
    for (const grant of this.#all(org_id)) if (!this.#holds(grant)) await this.#delete(grant);
  }

  close(): void {
    this.#bucket.close();
  }

  #all(org_id: string): GrantRecord[] {
    return [...(this.#byOrg.get(orgKey(org_id))?.values() ?? [])];
  }

  #holds(grant: GrantRecord): boolean {
    return (
      Date.parse(grant.expires_at) > this.#deps.now() &&
      this.#deps.memberOf(grant.org_id, grant.user_id)?.joined_at === grant.member_since
    );
  }

  /**
   * A grant is written once and deleted once: a delete that conflicts with another delete has
   * nothing left to do.
   */
  async #delete(grant: GrantRecord): Promise<void> {
    const key = keyOf(grant);
    const held = this.#bucket.held(key);
    if (held === undefined) return;
    await this.#bucket.delete(key, held.revision).catch((error: unknown) => {
      if (!(error instanceof RevisionConflict)) throw error;
    });
  }

  #put(key: string, grant: GrantRecord | null): void {
    const org = key.slice(0, key.lastIndexOf('.'));
    const grants = this.#byOrg.get(org) ?? new Map<string, GrantRecord>();
    if (grant === null) grants.delete(key);
    else grants.set(key, grant);
    if (grants.size === 0) this.#byOrg.delete(org);
    else this.#byOrg.set(org, grants);
  }
}

const keyOf = ({ org_id, grant_id }: Pick<GrantRecord, 'org_id' | 'grant_id'>): string =>
  `${orgKey(org_id)}.${grant_id}`;
