// Who is in which org, in memory: looked up on every request that brings a token. Kept current by the store's watch; nothing
// here reads a store.
import type { MemberRecord, OrgRecord } from '../../../schemas/records/org.ts';

export class MemberIndex {
  /** Active members by user_id; built once a record. */
  readonly #members = new WeakMap<OrgRecord, Map<string, MemberRecord>>();
  /** Orgs in which a user is an active member. */
  readonly #orgsOf = new Map<string, Set<string>>();
  readonly #recordOf = new Map<string, OrgRecord>();

  /** Takes the newest record of an org; null when the org is gone. `key`: whatever names the org here. */
  put(key: string, org: OrgRecord | null): void {
    const before = this.#recordOf.get(key);
    if (before !== undefined) for (const user_id of this.#activeOf(before).keys()) this.#forget(user_id, before.org_id);
    if (org === null) {
      this.#recordOf.delete(key);
      return;
    }
    this.#recordOf.set(key, org);
    for (const user_id of this.#activeOf(org).keys()) {
      const orgs = this.#orgsOf.get(user_id) ?? new Set();
      orgs.add(org.org_id);
      this.#orgsOf.set(user_id, orgs);
    }
  }

  /** An active member; null where the user is none. */
  member(org: OrgRecord, user_id: string): MemberRecord | null {
    return this.#activeOf(org).get(user_id) ?? null;
  }

  /** org_id of every org in which the user is an active member. */
  orgIdsOf(user_id: string): readonly string[] {
    return [...(this.#orgsOf.get(user_id) ?? [])];
  }

  #activeOf(org: OrgRecord): Map<string, MemberRecord> {
    let active = this.#members.get(org);
    if (active === undefined) {
      active = new Map(
        org.members.filter(({ status }) => status === 'active').map((member) => [member.user_id, member]),
      );
      this.#members.set(org, active);
    }
    return active;
  }

  #forget(user_id: string, org_id: string): void {
    const orgs = this.#orgsOf.get(user_id);
    orgs?.delete(org_id);
    if (orgs?.size === 0) this.#orgsOf.delete(user_id);
  }
}
