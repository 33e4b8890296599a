// What this process let in and what has not ended yet, to be told again while it lasts: a call of a model can last for minutes, and
// the others forget what they hear no more of. In: what begins and ends. Out: what is due to be told again, the longest untold first.
// Bounds: as many as its owner lets in at a time. Holds no clock.
import type { UseRow } from './use_rows.ts';

/** What is under way is told again so often, as far as REANNOUNCED_MAX lets it. */
export const REANNOUNCE_MS = 500;
/** Uses told again at a time. 20,000 of one use each (the calls and the records that a gateway may hold) take 20 times. */
export const REANNOUNCED_MAX = 1000;

/** Number, org and uses, as they are told. */
export type Announcement = [id: number, org_id: string, uses: UseRow[]];

export class OpenReservations {
  /** In the order in which they were told last. */
  readonly #open = new Map<number, { begun: Announcement; announced_at: number }>();

  begin(begun: Announcement, announced_at: number): void {
    this.#open.set(begun[0], { begun, announced_at });
  }

  end(id: number): void {
    this.#open.delete(id);
  }

  /** What is to be told again now, which is taken for told. */
  due(now: number): Announcement[] {
    const due: Announcement[] = [];
    let uses = 0;
    for (const { begun, announced_at } of this.#open.values()) {
      uses += begun[2].length;
      if (announced_at > now - REANNOUNCE_MS || (due.length > 0 && uses > REANNOUNCED_MAX)) break;
      due.push(begun);
    }
    for (const begun of due) {
      this.end(begun[0]);
      this.begin(begun, now);
    }
    return due;
  }
}
