// What this process let in and what has not ended yet, to be told again while it lasts: a call of a model can last for minutes, and
// the others forget what they hear no more of. In: what begins and ends. Out: what is due to be told again, the longest untold first.
// Bounds: as many as its owner lets in at a time. Holds no clock.
import type { UseRow } from '../../../schemas/signals/reservations.ts';

/** What is under way is told again so often, as far as RETOLD_MAX lets it. */
export const RETELL_MS = 500;
/** Uses told again at a time. 20,000 of one use each (the calls and the records that a gateway may hold) take 20 times. */
export const RETOLD_MAX = 1000;

/** Number, org and uses, as they are told. */
export type Begun = [id: number, org_id: string, uses: UseRow[]];

export class Held {
  /** In the order in which they were told last. */
  readonly #held = new Map<number, { begun: Begun; told_at: number }>();

  begin(begun: Begun, told_at: number): void {
    this.#held.set(begun[0], { begun, told_at });
  }

  end(id: number): void {
    this.#held.delete(id);
  }

  /** What is to be told again now, which is taken for told. */
  due(now: number): Begun[] {
    const due: Begun[] = [];
    let uses = 0;
    for (const { begun, told_at } of this.#held.values()) {
      uses += begun[2].length;
      if (told_at > now - RETELL_MS || (due.length > 0 && uses > RETOLD_MAX)) break;
      due.push(begun);
    }
    for (const begun of due) {
      this.end(begun[0]);
      this.begin(begun, now);
    }
    return due;
  }
}
