// Grants in JetStream KV, one key each, watched into memory: every request that a member's role
// alone does not permit reads them. A grant that has expired, or whose member has left, permits
// nothing from that moment on, whether or not its key has been deleted.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import { OrgIndex } from '../../../ops/platform/nats/org_index.ts';
import { watch } from '../../../ops/platform/nats/watch.ts';
import { RevisionConflict, type WatchedBucket } from '../../../ops/platform/nats/watched_bucket.ts';
import type { Log } from '../../../ops/platform/nats/open_log.ts';
import { grantKey, type GrantRecord } from '../../../schemas/records/grant.ts';
import type { MemberRecord } from '../../../schemas/records/org.ts';
import type { GrantLookup, Resource } from '../../http/auth.ts';
import type { Permission } from '../../http/permissions.ts';

export interface GrantStoreDeps {
  log: Log;
  /** Returns an active member; null for any other user. */
  memberOf: (org_id: string, user_id: string) => MemberRecord | null;
  /** Milliseconds since the epoch. */
  now: () => number;
  onProblem: ReportProblem;
}

export class GrantStore implements GrantLookup {
  readonly #bucket: WatchedBucket<GrantRecord>;
  readonly #deps: GrantStoreDeps;
  readonly #byOrg: OrgIndex<GrantRecord>;

  private constructor(bucket: WatchedBucket<GrantRecord>, deps: GrantStoreDeps) {
    this.#bucket = bucket;
    this.#deps = deps;
    this.#byOrg = new OrgIndex(bucket);
  }

  static async open(deps: GrantStoreDeps): Promise<GrantStore> {
    return new GrantStore(await watch(deps.log, 'grants', deps.onProblem), deps);
  }

  allows(org_id: string, user_id: string, resource: Resource, permission: Permission): boolean {
    for (const grant of this.#byOrg.of(org_id).values()) {
      if (grant.user_id !== user_id || grant.resource.id !== resource.id || grant.resource.type !== resource.type)
        continue;
      if (grant.permissions.some((given) => given === permission) && this.#holds(grant)) return true;
    }
    return false;
  }

  /** Returns an organization's valid grants, newest first. */
  list(org_id: string): GrantRecord[] {
    return this.#all(org_id)
      .filter((grant) => this.#holds(grant))
      .sort((a, b) =>
        a.created_at > b.created_at ? -1 : a.created_at < b.created_at ? 1 : a.grant_id < b.grant_id ? -1 : 1,
      );
  }

  create(grant: GrantRecord): Promise<void> {
    return this.#bucket.create(grantKey(grant), grant);
  }

  /** Revokes a valid grant; null when the organization has none with this id. */
  async remove(org_id: string, grant_id: string): Promise<GrantRecord | null> {
    const grant = this.#byOrg.of(org_id).get(grantKey({ org_id, grant_id }));
    if (grant === undefined || !this.#holds(grant)) return null;
    await this.#delete(grant);
    return grant;
  }

  /**
   * Deletes the organization's grants on one resource, including expired ones. @returns how many
   * there were
   */
  async removeOn(org_id: string, resource: Resource): Promise<number> {
    const grants = this.#all(org_id).filter(
      (grant) => grant.resource.type === resource.type && grant.resource.id === resource.id,
    );
    for (const grant of grants) await this.#delete(grant);
    return grants.length;
  }

  /** Deletes the organization's grants that are no longer valid. */
  async sweep(org_id: string): Promise<void> {
    for (const grant of this.#all(org_id)) if (!this.#holds(grant)) await this.#delete(grant);
  }

  close(): void {
    this.#bucket.close();
  }

  #all(org_id: string): GrantRecord[] {
    return [...this.#byOrg.of(org_id).values()];
  }

  #holds(grant: GrantRecord): boolean {
    return (
      Date.parse(grant.expires_at) > this.#deps.now() &&
      this.#deps.memberOf(grant.org_id, grant.user_id)?.joined_at === grant.member_since
    );
  }

  /**
   * A grant is written once and deleted once: the loser of two deletions finds it deleted all the
   * same.
   */
  async #delete(grant: GrantRecord): Promise<void> {
    const key = grantKey(grant);
    const held = this.#bucket.held(key);
    if (held === undefined) return;
    await this.#bucket.delete(key, held.revision).catch((error: unknown) => {
      if (!(error instanceof RevisionConflict)) throw error;
    });
  }
}
