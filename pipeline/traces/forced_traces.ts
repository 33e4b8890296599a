// Keeps the later events of forced traces, where sampling decides each event by itself:
// `attributes.force_trace` on one event forces sampling to keep the events of its trace from then
// on. Tail sampling decides whole traces and does not need this.
//
// The decision depends on log positions alone: an event is kept if it lies in or after the first
// message that forces its trace. So an event that is read again after a crash is decided as before.
// The position of that message is part of the trace's row and survives restarts and takeovers.
import { forcesTrace } from '../domain/traces/keep_rules.ts';
import type { MeteredEvent } from '../stage.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import { traceKey } from '../domain/traces/ids.ts';

/**
 * Returns the events, with those marked `full` that lie in or after the message that forces their
 * trace.
 */
export function keepForced(
  states: ReadonlyMap<number, Pick<PartitionState, 'book'>>,
  events: readonly MeteredEvent[],
): readonly MeteredEvent[] {
  if (!events.some(({ retain }) => retain === 'summary')) return events;
  const forced = new Map<string, number>();
  for (const { org_id, trace_id, log_seq, spans } of events) {
    if (!spans.some(forcesTrace)) continue;
    const key = traceKey(org_id, trace_id);
    forced.set(key, Math.min(log_seq, forced.get(key) ?? Infinity));
  }
  return events.map((event) => {
    if (event.retain === 'full') return event;
    const key = traceKey(event.org_id, event.trace_id);
    const from = Math.min(forced.get(key) ?? Infinity, states.get(event.partition)?.book.forcedFrom(key) ?? Infinity);
    return event.log_seq >= from ? { ...event, retain: 'full', sample_reason: 'trace' } : event;
  });
}
