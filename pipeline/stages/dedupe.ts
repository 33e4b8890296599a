// dedupe: an event of an org whose id was seen within the window is dropped. In: decoded events in log order. Out: the first of each.
// Exact: what the window is unsure of (its oldest ids, past a bound, are held in a filter) is looked up in the store
// before the batch runs. It never drops an event that is being read again after a crash: the window of a new owner is
// rebuilt from what lies at or below the checkpoint, and all above is read again.
// An event whose row was erased is no repeat of it: see forgotten.ts.
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
  /** The window of an owned partition. */
  windowOf(partition: number): IdWindow;
  /** What was erased of an owned partition; null for a partition that is another's by now. */
  forgottenOf(partition: number): Forgotten | null;
  /**
   * Which of these events the store holds from another position of the log; gives their identities. Its own row, landed
   * before a crash, is no repeat. Rejects when the store is away.
   */
  findLanded(events: readonly EventRef[]): Promise<ReadonlySet<string>>;
  /** Milliseconds since the epoch. */
  now(): number;
}

export function createDedupeStage(deps: DedupeDeps): Stage<DecodedEvent, DecodedEvent> {
  let landed: ReadonlySet<string> = new Set();
  /** What the event is, and what also has to remember it. */
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

/** The windows of a batch, without what is too old for all of its events. */
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
