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

/** A reservation as announced last; `begun` is null once it has ended. */
export interface OpenReservation {
  begun: Announcement | null;
  announced_at: number;
}

/** Reservations that have ended leave the queue when there are this many of them, and as many as others. */
const ENDED_MAX = 256;

export class OpenReservations {
  /** In the order of their last announcement. In an array because of what bag.ts says of a Map. */
  #queue: OpenReservation[] = [];
  /** Reservations in the queue that have ended. */
  #ended = 0;

  /** Returns the reservation for end(). */
  begin(begun: Announcement, announced_at: number): OpenReservation {
    const open: OpenReservation = { begun, announced_at };
    this.#queue.push(open);
    return open;
  }

  /** Ends a reservation, once. */
  end(open: OpenReservation): void {
    open.begun = null;
    this.#ended++;
    if (this.#ended < ENDED_MAX || 2 * this.#ended < this.#queue.length) return;
    this.#queue = this.#queue.filter(({ begun: of }) => of !== null);
    this.#ended = 0;
  }

  /** Returns the reservations to announce again now, and marks them as announced. */
  due(now: number): Announcement[] {
    const due: Announcement[] = [];
    const again: OpenReservation[] = [];
    let uses = 0;
    let taken = 0;
    for (const open of this.#queue) {
      const { begun, announced_at } = open;
      if (begun !== null) {
        uses += begun[2].length;
        if (announced_at > now - REANNOUNCE_MS || (due.length > 0 && uses > REANNOUNCED_MAX)) break;
        due.push(begun);
        again.push(open);
        open.announced_at = now;
      } else this.#ended--;
      taken++;
    }
    this.#queue.splice(0, taken);
    this.#queue.push(...again);
    return due;
  }
}
