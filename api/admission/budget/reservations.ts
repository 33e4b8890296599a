// The open reservations of this process, which announces them again while they last: a call of a
// model can last for minutes, and the other processes expire reservations that are no longer
// announced. Takes the begin and the end of reservations; returns the ones due for another
// announcement, the longest unannounced first. The bounds on requests bound their number. Reads no
// clock.
import type { UseRow } from '../../../schemas/signals/reservations.ts';

/**
 * Milliseconds after which an open reservation is announced again, as far as REANNOUNCED_MAX
 * allows.
 */
export const REANNOUNCE_MS = 500;
/**
 * Maximum number of uses announced again at a time. 20,000 reservations of one use each (the calls
 * and records of a full gateway) take 20 rounds.
 */
export const REANNOUNCED_MAX = 1000;

/** Number, organization and uses of a reservation, as announced. */
export type Announcement = [id: number, org_id: string, uses: UseRow[]];

export class OpenReservations {
  /** In the order of their last announcement. */
  readonly #open = new Map<number, { begun: Announcement; announced_at: number }>();

  begin(begun: Announcement, announced_at: number): void {
    this.#open.set(begun[0], { begun, announced_at });
  }

  end(id: number): void {
    this.#open.delete(id);
  }

  /** Returns the reservations to announce again now, and marks them as announced. */
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
