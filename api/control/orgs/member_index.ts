// The members of every organization in memory, read on every request with a token of a person. The
// watch of the store keeps it current; nothing here reads a store.
import type { MemberRecord, OrgRecord } from '../../../schemas/records/org.ts';

export class MemberIndex {
  /** Active members by user_id, built once for each record. */
  readonly #members = new WeakMap<OrgRecord, Map<string, MemberRecord>>();
  /** Keys of the organizations in which a user is an active member, by user_id. */
  readonly #orgsOf = new Map<string, Set<string>>();
  readonly #recordOf = new Map<string, OrgRecord>();

  /**
   * Replaces the record of an organization; null removes it.
   *
   * @param key identifies the organization in this index
   */
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

  /** Returns an active member, or null. */
  member(org: OrgRecord, user_id: string): MemberRecord | null {
    return this.#activeOf(org).get(user_id) ?? null;
  }

  /** Returns the org_id of every organization in which the user is an active member. */
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
