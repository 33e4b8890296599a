// Traces and organizations of one partition whose rows were erased, while the ids of their events may still be in the dedupe window.
// In: what was erased, and the events that come. Out: whether an event that the window has seen is a repeat, new, or has to be looked up
// in the store, which alone knows whether the row is still there.
// Guarantee: of events that arrive after the erasure the first one lands and its repeats do not, exactly: ids that arrived since are
// remembered apart. Bounds: the same as those of the dedupe window, in time and in ids that are held exactly.
import { xxHash32 } from '../domain/traces/xxhash.ts';
import { IdWindow, type Sighting } from './id_window.ts';

export class Forgotten {
  readonly #windowMs: number;
  readonly #idsExactMax: number;
  #traces: IdWindow | null = null;
  /** Ids of events of such traces and organizations that arrived since the newest erasure. */
  #since: IdWindow | null = null;
  /** Organizations, with the time from which on the window holds no id of before the erasure, in milliseconds. */
  readonly #orgs = new Map<string, number>();

  /**
   * @param windowMs how long the dedupe window remembers an id
   * @param idsExactMax ids held exactly before the oldest go into filters
   */
  constructor(windowMs: number, idsExactMax: number) {
    this.#windowMs = windowMs;
    this.#idsExactMax = idsExactMax;
  }

  /** Whether nothing was erased within the window: then no event needs a look. */
  get isEmpty(): boolean {
    return this.#traces === null && this.#orgs.size === 0;
  }

  /** Takes in erased traces. Call it when all that was prepared has landed. @param now milliseconds, not behind the ids in the window */
  addTraces(org_id: string, traceIds: Iterable<string>, now: number): void {
    this.#traces ??= new IdWindow(this.#windowMs, this.#idsExactMax);
    for (const trace_id of traceIds) this.#traces.addHalves(...traceHalves(org_id, trace_id), now);
    this.#traces.trim();
    this.#since = new IdWindow(this.#windowMs, this.#idsExactMax);
  }

  /** Takes in an erased organization, as addTraces does. */
  addOrg(org_id: string, now: number): void {
    // A window forgets by sixths of its time.
    this.#orgs.set(org_id, now + 2 * this.#windowMs);
    this.#since = new IdWindow(this.#windowMs, this.#idsExactMax);
  }

  /** Whether rows of the event's trace or organization were erased. */
  concerns({ org_id, trace_id }: { org_id: string; trace_id: string }): boolean {
    if (this.#orgs.has(org_id)) return true;
    return this.#traces !== null && this.#traces.lookHalves(...traceHalves(org_id, trace_id)) !== 'new';
  }

  /** What an event is that `concerns` is true of. @param sighting what the dedupe window says of its id */
  look(high: number, low: number, sighting: Sighting): Sighting {
    const since = this.#since?.lookHalves(high, low) ?? 'new';
    if (since !== 'new') return since;
    // Arrived before the erasure ended: its row may be gone, or be newer than what was erased.
    return sighting === 'new' ? 'new' : 'unsure';
  }

  /** Remembers the id of such an event that lands. */
  add(high: number, low: number, receivedAt: number): void {
    this.#since?.addHalves(high, low, receivedAt);
  }

  /** Forgets what is older than the window. @param now the time of what is read */
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

/** A trace of an org as two unsigned 32-bit numbers. */
function traceHalves(org_id: string, trace_id: string): readonly [high: number, low: number] {
  const name = `${org_id}\n${trace_id}`;
  return [xxHash32(Buffer.from(`high ${name}`, 'utf8')), xxHash32(Buffer.from(`low ${name}`, 'utf8'))];
}
