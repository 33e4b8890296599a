// dedupe: an event whose id was seen within the window is dropped. In: decoded events in log order. Out: the first of each.
// Exact: what the window is unsure of (its oldest ids, past a bound, are held in a filter) is looked up in the store
// before the batch runs. It never drops an event that is being read again after a crash: the window of a new owner is
// rebuilt from what lies at or below the checkpoint, and all above is read again.
import type { DecodedEvent, LogPosition, Outcome, Stage } from '../../stage.ts';
import type { IdWindow } from './id_window.ts';

export interface EventRef extends LogPosition {
  org_id: string;
  trace_id: string;
  event_hex: string;
}

export interface DedupeDeps {
  /** The window of an owned partition. */
  windowOf(partition: number): IdWindow;
  /**
   * Which of these events the store holds from another position of the log; gives their event_hex. Its own row, landed
   * before a crash, is no repeat. Rejects when the store is away.
   */
  findLanded(events: readonly EventRef[]): Promise<ReadonlySet<string>>;
  /** Milliseconds since the epoch. */
  now(): number;
}

export function createDedupeStage(deps: DedupeDeps): Stage<DecodedEvent, DecodedEvent> {
  let landed: ReadonlySet<string> = new Set();
  return {
    name: 'dedupe',
    async prefetch(batch) {
      const unsure = batch.filter((event) => deps.windowOf(event.partition).look(event.event_hex) === 'unsure');
      landed = unsure.length === 0 ? new Set() : await deps.findLanded(unsure);
    },
    run(batch) {
      const now = deps.now();
      const windows = new Set<IdWindow>();
      const outcomes = batch.map((event): Outcome<DecodedEvent> => {
        const window = deps.windowOf(event.partition);
        windows.add(window);
        const sighting = window.look(event.event_hex);
        if (sighting === 'seen' || (sighting === 'unsure' && landed.has(event.event_hex))) return { kind: 'drop', reason: 'duplicate' };
        window.add(event.event_hex, event.received_at);
        return { kind: 'emit', out: event };
      });
      for (const window of windows) window.trim(now);
      return outcomes;
    },
  };
}
