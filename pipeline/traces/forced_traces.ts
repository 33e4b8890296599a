// Keeps the later events of forced traces: attributes.force_trace on one event forces its trace to be kept by sampling. For sampling
// that decides each event by itself; tail sampling decides whole traces.
// In: the events of a batch, and what the books know of their traces. Out: the same events, those of forced traces marked full.
//
// Guarantee: the decision is a matter of log positions alone (the event lies in or after the first message that forces its trace), so an
// event that is read again after a crash is decided as before. That message is on the trace's row, so it survives restarts and handovers.
import { forcesTrace } from '../domain/traces/keep_rules.ts';
import type { MeteredEvent } from '../stage.ts';
import type { PartitionState } from '../worker/partition_state.ts';
import { traceKey } from './open_traces.ts';

/** Returns the events with those full that lie in or after the message that forces their trace. */
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
