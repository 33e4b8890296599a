// Traces and organizations of one partition whose rows were erased, while the ids of their events
// may still be in the dedupe window.
//
// For an event of theirs that the window has seen, it says whether the event is a repeat, is new,
// or must be looked up in the store, which alone knows whether the row still exists. Of the events
// that arrive after the erasure, exactly the first of each id lands, because ids that arrive since
// are remembered apart. The bounds are those of the dedupe window, in time and in ids held exactly.
import { xxHash32 } from '../domain/traces/xxhash.ts';
import { IdWindow, type Sighting } from './id_window.ts';

export class Forgotten {
  readonly #windowMs: number;
  readonly #idsExactMax: number;
  #traces: IdWindow | null = null;
  /** Ids of events of these traces and organizations that arrived since the newest erasure. */
  #since: IdWindow | null = null;
  /**
   * Erased organizations, with the time at which the window has forgotten every id from before the
   * erasure, in milliseconds.
   */
  readonly #orgs = new Map<string, number>();

  /**
   * @param windowMs how long the dedupe window remembers an id, in milliseconds
   * @param idsExactMax ids held exactly before the oldest move to filters
   */
  constructor(windowMs: number, idsExactMax: number) {
    this.#windowMs = windowMs;
    this.#idsExactMax = idsExactMax;
  }

  /**
   * True if nothing was erased within the window: then every event is decided by the dedupe window
   * alone.
   */
  get isEmpty(): boolean {
    return this.#traces === null && this.#orgs.size === 0;
  }

  /**
   * Adds erased traces. Call it when everything prepared has landed.
   *
   * @param now milliseconds, at or after the time of every id in the window
   */
  addTraces(org_id: string, traceIds: Iterable<string>, now: number): void {
    this.#traces ??= new IdWindow(this.#windowMs, this.#idsExactMax);
    for (const trace_id of traceIds) this.#traces.addHalves(...traceHalves(org_id, trace_id), now);
    this.#traces.trim();
    this.#since = new IdWindow(this.#windowMs, this.#idsExactMax);
  }

  /** Adds an erased organization. The same conditions apply as to addTraces. */
  addOrg(org_id: string, now: number): void {
    // The window forgets in steps of a sixth of its time, so twice its time is enough.
    this.#orgs.set(org_id, now + 2 * this.#windowMs);
    this.#since = new IdWindow(this.#windowMs, this.#idsExactMax);
  }

  /** Returns whether rows of the event's trace or organization were erased. */
  concerns({ org_id, trace_id }: { org_id: string; trace_id: string }): boolean {
    if (this.#orgs.has(org_id)) return true;
    return this.#traces !== null && this.#traces.lookHalves(...traceHalves(org_id, trace_id)) !== 'new';
  }

  /**
   * Returns whether an event for which `concerns` is true was seen.
   *
   * @param sighting the answer of the dedupe window for its id
   */
  look(high: number, low: number, sighting: Sighting): Sighting {
    const since = this.#since?.lookHalves(high, low) ?? 'new';
    if (since !== 'new') return since;
    // The event arrived before the erasure ended. Its row may have been erased, or be newer than
    // what was erased.
    return sighting === 'new' ? 'new' : 'unsure';
  }

  /** Remembers the id of such an event that lands. */
  add(high: number, low: number, receivedAt: number): void {
    this.#since?.addHalves(high, low, receivedAt);
  }

  /**
   * Forgets what is older than the window.
   *
   * @param now time of the events being read, in milliseconds
   */
  forget(now: number): void {
    if (this.isEmpty) return;
    this.#since?.forget(now);
    this.#since?.trim();
    this.#traces?.forget(now);
    if (this.#traces?.isEmpty === true) this.#traces = null;
    for (const [org_id, until] of this.#orgs) if (until < now) this.#orgs.delete(org_id);
    if (this.#traces === null && this.#orgs.size === 0) this.#since = null;
  }
}

/** Returns a hash of a trace and its organization as two unsigned 32-bit numbers. */
function traceHalves(org_id: string, trace_id: string): readonly [high: number, low: number] {
  const name = `${org_id}\n${trace_id}`;
  return [xxHash32(Buffer.from(`high ${name}`, 'utf8')), xxHash32(Buffer.from(`low ${name}`, 'utf8'))];
}
