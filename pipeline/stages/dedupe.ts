// The stage dedupe: drops an event of an organization whose id was seen within the window. It takes
// decoded events in log order and returns the first of each.
//
// It is exact. Ids of which the window is unsure (beyond a bound, its oldest ids move to a filter)
// are looked up in the store before the batch runs. It never drops an event that is replayed after
// a crash: the window of a new owner is rebuilt from the rows at or below the checkpoint, and
// everything above is read again. An event whose row was erased does not count as a repeat; see
// forgotten.ts.
import { eventIdentity, identityHalves } from '../domain/traces/event_identity.ts';
import type { DecodedEvent, LogPosition, Outcome, Stage } from '../stage.ts';
import type { Forgotten } from './forgotten.ts';
import type { IdWindow, Sighting } from './id_window.ts';

export interface EventRef extends LogPosition {
  org_id: string;
  trace_id: string;
  event_hex: string;
}

export interface DedupeDeps {
  /** Returns the window of an owned partition. */
  windowOf(partition: number): IdWindow;
  /** Returns what was erased of a partition; null if another worker owns it. */
  forgottenOf(partition: number): Forgotten | null;
  /**
   * Returns the identities of those events of which the store has a row from another log position.
   * A row from the event's own position, landed before a crash, makes it no repeat. Rejects if the
   * store is unavailable.
   */
  findLanded(events: readonly EventRef[]): Promise<ReadonlySet<string>>;
  /** Returns milliseconds since the epoch. */
  now(): number;
}

export function createDedupeStage(deps: DedupeDeps): Stage<DecodedEvent, DecodedEvent> {
  let landed: ReadonlySet<string> = new Set();
  /**
   * Returns whether the event was seen, and the list of erasures that must remember it too, if
   * there is one.
   */
  const look = (
    event: DecodedEvent,
    high: number,
    low: number,
  ): { sighting: Sighting; forgotten: Forgotten | null } => {
    const sighting = deps.windowOf(event.partition).lookHalves(high, low);
    const forgotten = deps.forgottenOf(event.partition);
    if (forgotten === null || forgotten.isEmpty || !forgotten.concerns(event)) return { sighting, forgotten: null };
    return { sighting: forgotten.look(high, low, sighting), forgotten };
  };
  return {
    name: 'dedupe',
    async prefetch(batch) {
      const unsure = batch.filter((event) => {
        const isSure = deps.windowOf(event.partition).isExact && deps.forgottenOf(event.partition)?.isEmpty !== false;
        return !isSure && look(event, ...identityHalves(event)).sighting === 'unsure';
      });
      landed = unsure.length === 0 ? new Set() : await deps.findLanded(unsure);
    },
    run(batch) {
      const windows = windowsOf(batch, deps);
      const outcomes = batch.map((event): Outcome<DecodedEvent> => {
        const window = deps.windowOf(event.partition);
        const [high, low] = identityHalves(event);
        const { sighting, forgotten } = look(event, high, low);
        if (sighting === 'seen' || (sighting === 'unsure' && landed.has(eventIdentity(event))))
          return { kind: 'drop', reason: 'duplicate' };
        window.addHalves(high, low, event.received_at);
        forgotten?.add(high, low, event.received_at);
        return { kind: 'emit', out: event };
      });
      for (const window of windows) window.trim();
      return outcomes;
    },
  };
}

/**
 * Returns the windows of a batch, after they have forgotten what is too old for all of its events.
 */
function windowsOf(batch: readonly DecodedEvent[], deps: DedupeDeps): Iterable<IdWindow> {
  const oldest = new Map<IdWindow, number>();
  const clock = deps.now();
  const forgotten = new Map<IdWindow, Forgotten | null>();
  for (const { partition, received_at } of batch) {
    const window = deps.windowOf(partition);
    if (!oldest.has(window)) forgotten.set(window, deps.forgottenOf(partition));
    oldest.set(window, Math.min(oldest.get(window) ?? clock, received_at));
  }
  for (const [window, at] of oldest) {
    window.forget(at);
    forgotten.get(window)?.forget(at);
  }
  return oldest.keys();
}
