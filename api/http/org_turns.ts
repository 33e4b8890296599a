// Bounds slow work of requests, so that neither one organization nor all of them together occupy the
// store and the memory of a process. A few tasks run at a time, and fewer for one organization;
// others wait for a place in turn. Guarantees: the number of waiting tasks of an organization and the
// time of a wait are bounded, and a caller that disconnects stops waiting.
import { FairSlots, type SlotBounds } from '../../ops/platform/fair_slots.ts';
import { ApiError } from './errors.ts';
import { OrgSlots } from './org_slots.ts';

export interface TurnBounds extends SlotBounds {
  /** Tasks of one organization that run or wait; further ones are rejected at once. */
  orgOpenMax: number;
  /** Milliseconds that a task waits for its place. */
  waitMsMax: number;
}

export class OrgTurns {
  readonly #bounds: TurnBounds;
  readonly #open: OrgSlots;
  readonly #slots: FairSlots;
  readonly #work: string;

  /** @param work plural noun for the tasks, for errors */
  constructor(work: string, bounds: TurnBounds) {
    this.#work = work;
    this.#bounds = bounds;
    this.#open = new OrgSlots(bounds.orgOpenMax);
    this.#slots = new FairSlots(bounds);
  }

  /**
   * Runs a task once there is a place for it.
   * @throws ApiError rate_limited when too many tasks of the organization wait, or when there is no
   * place within waitMsMax; the signal's reason when it aborts first
   */
  async run<T>(org_id: string, signal: AbortSignal, task: () => Promise<T>): Promise<T> {
    const { orgOpenMax, waitMsMax } = this.#bounds;
    const release = this.#open.take(org_id);
    if (release === null)
      throw refused(`This organization has ${orgOpenMax} ${this.#work} in progress or waiting in this process.`);
    const waited = new AbortController();
    const timer = setTimeout(() => {
      waited.abort(
        refused(`There was no place for this request within ${waitMsMax / 1000} seconds: too many ${this.#work}.`),
      );
    }, waitMsMax);
    try {
      return await this.#slots.run(org_id, AbortSignal.any([signal, waited.signal]), () => {
        clearTimeout(timer);
        return task();
      });
    } finally {
      clearTimeout(timer);
      release();
    }
  }
}

function refused(why: string): ApiError {
  return new ApiError('rate_limited', `${why} Retry after the number of seconds in Retry-After.`, {
    headers: { 'Retry-After': '1' },
  });
}
