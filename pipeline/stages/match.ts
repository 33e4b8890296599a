// The stage match: counts a model call once, however many records of it arrive (ADR 51).
//
// It takes events in log order. The first record of a call counts. A later one keeps its row, named
// as a duplicate, without tokens and cost. A record of the gateway counts in place of those before
// it: the event says which, so that their usage is cancelled, and their rows are corrected once they
// have landed (landing/replaced_spans.ts). The result for an event depends only on the events before
// it in the log, so an event that is read again after a crash gets the same result.
import { callRecordOf, duplicateOf, replacing, type CallRecord } from '../domain/traces/call_records.ts';
import type { DecodedEvent, Outcome, Stage } from '../stage.ts';
import type { KnownCalls, RecordPlace, TraceMemory } from './known_calls.ts';

/** What a partition remembers of its calls and traces. */
interface PartitionCalls {
  calls: KnownCalls;
  book: TraceMemory;
}

/** A landed call, with the trace that it belongs to. */
export interface LandedCall extends CallRecord {
  org_id: string;
  trace_id: string;
  log_seq: number;
}

/** The first record of a trace whose calls are looked up, and the partition of the trace. */
export type PlacedRecord = RecordPlace & { partition: number };

export interface MatchDeps {
  /** Returns null for a partition that this worker does not own. */
  partitionOf(partition: number): PartitionCalls | null;
  /**
   * Returns the counted calls of traces that landed before a position, in log order. Rejects if the
   * store is unavailable.
   */
  findCalls(traces: readonly PlacedRecord[]): Promise<readonly LandedCall[]>;
}

export function createMatchStage(deps: MatchDeps): Stage<DecodedEvent, DecodedEvent> {
  let records = new Map<DecodedEvent, CallRecord>();
  return {
    name: 'match',
    async prefetch(batch) {
      records = new Map();
      /** First record of each trace whose calls are not in memory. */
      const unknown = new Map<string, PlacedRecord>();
      for (const event of batch) {
        const record = callRecordOf(event);
        if (record === null) continue;
        records.set(event, record);
        const at = deps.partitionOf(event.partition);
        if (at === null || !at.calls.needsStore(event, at.book)) continue;
        const key = JSON.stringify([event.org_id, event.trace_id]);
        if (!unknown.has(key)) unknown.set(key, event);
      }
      if (unknown.size > 0) await restore(deps, [...unknown.values()]);
    },
    run: (batch) =>
      batch.map((event): Outcome<DecodedEvent> => {
        const record = records.get(event);
        return { kind: 'emit', out: record === undefined ? event : matched(deps, event, record) };
      }),
  };
}

async function restore(deps: MatchDeps, places: readonly PlacedRecord[]): Promise<void> {
  const landed = Map.groupBy(await deps.findCalls(places), ({ org_id, trace_id }) =>
    JSON.stringify([org_id, trace_id]),
  );
  for (const place of places)
    deps
      .partitionOf(place.partition)
      ?.calls.restore(place, landed.get(JSON.stringify([place.org_id, place.trace_id])) ?? []);
}

function matched(deps: MatchDeps, event: DecodedEvent, record: CallRecord): DecodedEvent {
  const match = deps.partitionOf(event.partition)?.calls.take(event, record);
  const [own, ...others] = event.spans;
  if (match === undefined || own === undefined) return event;
  const { duplicate_of, replaced } = match;
  if (duplicate_of !== null) return { ...event, spans: [duplicateOf(own, duplicate_of), ...others] };
  if (replaced.length === 0) return event;
  return { ...event, spans: [replacing(own, replaced), ...others], replaced };
}
