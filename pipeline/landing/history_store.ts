// Reads back from ClickHouse what a new owner of a partition needs: the rows above its checkpoint,
// its open traces, and the ids of its dedupe window. Log positions are the store's: position
// in the log plus log base.
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type { ClickHouse } from '../../sql/client/client.ts';
import { repairAgentActivity } from '../../sql/stores/landings.ts';
import {
  eachEventId,
  eachTraceHash,
  readDecidedTraces,
  readOpenTraces,
  readUsageThrough,
} from '../../sql/stores/partition_rows.ts';
import { traceKey } from '../domain/traces/ids.ts';
import { storedTrace } from '../traces/stored_trace.ts';
import type {
  FullFrom,
  HistoryOptions,
  HistoryStore,
  PartitionHistory,
  PartitionMemory,
} from '../worker/partition_state.ts';
import type { LandingStore } from './lander.ts';

/**
 * Slack before the window, because the next events to be read are older than the newest landed ones
 * by a landing or two.
 */
const RECALL_SLACK_MS = 600_000;

export class ClickHouseHistoryStore implements HistoryStore {
  readonly #client: ClickHouse;
  readonly #landing: Pick<LandingStore, 'landedKeys' | 'repairLookup'>;

  constructor(client: ClickHouse, landing: Pick<LandingStore, 'landedKeys' | 'repairLookup'>) {
    this.#client = client;
    this.#landing = landing;
  }

  async partitionHistory(
    record: PartitionRecord,
    { logBase, windowMs, tail }: HistoryOptions,
    memory: PartitionMemory,
  ): Promise<PartitionHistory> {
    const { partition } = record;
    const checkpoint = logBase + record.checkpoint;
    const above = checkpoint + 1;
    const [usage] = await Promise.all([
      readUsageThrough(this.#client, partition),
      // A power loss may have lost the trace_lookup rows of an insert whose spans survived. A
      // repeated row changes nothing there.
      this.#landing.repairLookup(partition, above),
      // A worker that died had not written the activity of agents above its last checkpoint.
      repairAgentActivity(this.#client, partition, checkpoint),
    ]);
    const since = windowStart(windowMs, usage.received_ms);
    const [spans, texts, traces, decided] = await Promise.all([
      this.#landing.landedKeys('spans', partition, above),
      this.#landing.landedKeys('span_texts_recent', partition, above),
      readOpenTraces(this.#client, { partition, through: logBase + record.completed_through }),
      tail ? this.#decided(partition, above) : new Map<string, FullFrom>(),
      eachTraceHash(this.#client, partition, (hash) => {
        memory.trace(hash);
      }),
      eachEventId(this.#client, { partition, checkpoint, since }, (high, low, receivedAt) => {
        memory.id(high, low, receivedAt);
      }),
    ]);
    return { spans, texts, usage_through: usage.log_seq, traces: traces.map(storedTrace), decided };
  }

  /**
   * Returns how tail sampling has decided the traces with rows from a position on. A kept trace has
   * no summary row from there on; a summarized trace may have events that a rule kept by
   * themselves. A trace of which only texts have landed was kept.
   */
  async #decided(partition: number, fromSeq: number): Promise<Map<string, FullFrom>> {
    const rows = await readDecidedTraces(this.#client, { partition, from: fromSeq });
    return new Map(
      rows.map(({ org_id, trace_id, summaries, full, seq, index }): [string, FullFrom] => {
        const key = traceKey(org_id, trace_id);
        if (summaries === 0) return [key, { log_seq: 0, log_index: 0 }];
        return [key, full === 0 ? { log_seq: Infinity, log_index: 0 } : { log_seq: seq, log_index: index }];
      }),
    );
  }
}

/**
 * Returns the time from which on ids of a partition are read back, in milliseconds: one window
 * before the newest landed event. That may be long ago if the log waited for the store for longer
 * than the window.
 */
function windowStart(windowMs: number, landedMs: number): number {
  const newest = landedMs > 0 ? Math.min(landedMs, Date.now()) : Date.now();
  return newest - windowMs - RECALL_SLACK_MS;
}
