// Counts work that is under way, so that one organization's slow work cannot hold every socket and all memory of a process.
// In: an organization that begins something. Out: a place and the function that gives the place back, or null when the
// organization already has all of its places. Nothing waits here: the caller of take() answers 429 instead.

export class OrgSlots {
  readonly #orgMax: number;
  readonly #taken = new Map<string, number>();

  /** @param orgMax places of one organization in this process */
  constructor(orgMax: number) {
    this.#orgMax = orgMax;
  }

  /** Returns the function that gives the place back (further calls do nothing), or null when no place is free. */
  take(org_id: string): (() => void) | null {
    const taken = this.#taken.get(org_id) ?? 0;
    if (taken >= this.#orgMax) return null;
    this.#taken.set(org_id, taken + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      const left = (this.#taken.get(org_id) ?? 1) - 1;
      if (left === 0) this.#taken.delete(org_id);
      else this.#taken.set(org_id, left);
    };
  }
}
