// Bounds the work in progress of each organization, so that slow work of one cannot occupy every
// socket and all memory of a process. Nothing waits here: the caller of take() responds with 429
// instead.

export class OrgSlots {
  readonly #orgMax: number;
  readonly #taken = new Map<string, number>();

  /** @param orgMax slots of one organization in this process */
  constructor(orgMax: number) {
    this.#orgMax = orgMax;
  }

  /**
   * Takes a slot. Returns the function that releases it (further calls do nothing); null when no
   * slot is free.
   */
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
