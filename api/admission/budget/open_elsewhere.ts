// The open reservations of the other API processes, as their messages announce them. A process that
// is gone, or whose message was lost, never reports how its reservations ended. Such a reservation is
// settled by what landed: it counts until everything that the log held after its process was gone has
// landed, because its events are either among that or were never stored. Takes the beginnings and
// ends that were heard; reads the end of the log for those that will not be heard.
//
// Bounds: OPEN_MAX reservations, one read of the log at a time.
import type { ReportProblem } from '../../../ops/platform/report_problem.ts';
import type { Reservation } from '../../../pipeline/domain/budgets/usage_ledger.ts';

/**
 * A reservation that has not been announced for this long has ended unheard, or its process died.
 * Lasting ones are announced again, see reservations.ts.
 */
const OPEN_MS_MAX = 3000;
/**
 * Maximum number of open reservations of other processes; further ones count only once they land.
 */
const OPEN_MAX = 100_000;

/** An open reservation of another process. */
interface Open {
  sender: string;
  reservation: Reservation;
  /** Time of its last announcement, milliseconds of the monotonic clock. */
  heard_at: number;
}

export interface OpenElsewhereDeps {
  /** Returns the position of the newest message of the ingest log by partition. */
  logEnd: () => Promise<ReadonlyMap<number, number>>;
  onProblem: ReportProblem;
}

export class OpenElsewhere {
  readonly #deps: OpenElsewhereDeps;
  /** By sender and number. */
  readonly #open = new Map<string, Open>();
  /** Processes that are gone and have reservations left. */
  readonly #gone = new Set<string>();
  #settling = false;

  constructor(deps: OpenElsewhereDeps) {
    this.#deps = deps;
  }

  /** True when no further reservation can be kept. */
  get full(): boolean {
    return this.#open.size >= OPEN_MAX;
  }

  /**
   * Keeps a reservation made here for another process, or announces it again.
   * @returns false where there is no room for it
   */
  keep(sender: string, id: number, reservation: Reservation): boolean {
    if (this.full) return false;
    this.#open.set(keyOf(sender, id), { sender, reservation, heard_at: performance.now() });
    return true;
  }

  /** Removes and returns a reservation that its process has announced again or ended. */
  take(sender: string, id: number): Reservation | undefined {
    const key = keyOf(sender, id);
    const open = this.#open.get(key);
    this.#open.delete(key);
    return open?.reservation;
  }

  /** Marks a process as gone: the end of its reservations will not be heard. */
  gone(sender: string): void {
    this.#gone.add(sender);
  }

  /** Takes that a process is alive. */
  heard(sender: string): void {
    this.#gone.delete(sender);
  }

  /**
   * Settles the reservations whose end will not be heard.
   * @param heardUntil time up to which everything has been heard: after a pause, messages that end
   * reservations may be waiting
   */
  async settle(heardUntil: number): Promise<void> {
    if (this.#settling) return;
    const gone = new Set(this.#gone);
    const ended: [key: string, open: Open][] = [];
    for (const [key, open] of this.#open)
      if (gone.has(open.sender) || open.heard_at <= heardUntil - OPEN_MS_MAX) ended.push([key, open]);
    if (ended.length === 0) {
      for (const sender of gone) this.#gone.delete(sender);
      return;
    }
    this.#settling = true;
    try {
      const end = await this.#deps.logEnd();
      for (const [key, open] of ended) {
        // One that was announced again meanwhile is another entry.
        if (this.#open.get(key) !== open) continue;
        this.#open.delete(key);
        open.reservation.confirm(end);
      }
    } catch (cause) {
      this.#deps.onProblem('the end of the ingest log could not be read to settle reservations; retrying', cause);
    } finally {
      this.#settling = false;
    }
  }
}

const keyOf = (sender: string, id: number): string => `${sender} ${id}`;
