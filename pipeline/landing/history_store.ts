// Reads back from ClickHouse what a new owner of a partition needs: the rows above its checkpoint,
// its open traces, and the ids of its dedupe window. Log positions are the store's: JetStream
// sequence plus log base.
import type { ClickHouse } from '../../sql/client/client.ts';
import { ORG_HIGH_SQL, ORG_LOW_SQL } from '../domain/traces/event_identity.ts';
import { traceKey } from '../traces/open_traces.ts';
import { storedTrace, TRACE_COLUMNS, type TraceRecord } from '../traces/stored_trace.ts';
import { TRACE_HASH_SQL } from '../traces/trace_filter.ts';
import type { LandingStore } from './lander.ts';
import type { PartitionRecord } from '../worker/partition_record.ts';
import type {
  FullFrom,
  HistoryOptions,
  HistoryStore,
  PartitionHistory,
  PartitionMemory,
} from '../worker/partition_state.ts';

const READ_TIMEOUT_MS = 60_000;
/**
 * Slack before the window, because the next events to be read are older than the newest landed ones
 * by a landing or two.
 */
const RECALL_SLACK_MS = 600_000;
/** Widths of binary records: a UInt32; a UInt64 and three UInt32. */
const HASH_BYTES = 4;
const ID_BYTES = 20;

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
    // A power loss may have lost the trace_lookup rows of an insert whose spans survived. A
    // repeated row changes nothing there.
    await this.#landing.repairLookup(partition, above);
    // A worker that died had not written the activity of agents above its last checkpoint.
    await this.#command(
      'mend_activity',
      `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at)
       SELECT org_id, agent_id, max(last_received_at), now64(3, 'UTC') FROM usage_events
       WHERE partition = {partition:UInt16} AND log_seq > {checkpoint:UInt64} AND agent_id != '' GROUP BY org_id, agent_id`,
      { partition, checkpoint },
    );
    const [landed] = await this.#rows<{ seq: string; received_ms: string }>(
      'usage_through',
      `SELECT toString(max(log_seq)) AS seq, toString(toUnixTimestamp64Milli(max(last_received_at))) AS received_ms
       FROM usage_events WHERE partition = {partition:UInt16}`,
      { partition },
    );
    const [spans, texts, traces, decided] = await Promise.all([
      this.#landing.landedKeys('spans', partition, above),
      this.#landing.landedKeys('span_texts_recent', partition, above),
      this.#rows<TraceRecord>(
        'open_traces',
        `SELECT * FROM (SELECT ${TRACE_COLUMNS} FROM traces WHERE partition = {partition:UInt16} AND log_seq > {through:UInt64} AND sign = 1 ORDER BY version DESC LIMIT 1 BY org_id, trace_id) ORDER BY version`,
        { partition, through: logBase + record.completed_through },
      ),
      tail ? this.#decided(partition, above) : new Map<string, FullFrom>(),
      this.#recallTraces(partition, memory),
      this.#recallIds(
        { partition, checkpoint, since: windowStart(windowMs, Number(landed?.received_ms ?? 0)) },
        memory,
      ),
    ]);
    return { spans, texts, usage_through: Number(landed?.seq ?? 0), traces: traces.map(storedTrace), decided };
  }

  /**
   * Returns how tail sampling has decided the traces with rows from a position on. A kept trace has
   * no summary row from there on; a summarized trace may have events that a rule kept by
   * themselves. A trace of which only texts have landed was kept.
   */
  async #decided(partition: number, fromSeq: number): Promise<Map<string, FullFrom>> {
    const select = (sampled: string, table: string): string =>
      `SELECT org_id, trace_id, log_seq, log_index, ${sampled} AS sampled FROM ${table} WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}`;
    const rows = await this.#rows<{
      org_id: string;
      trace_id: string;
      summaries: string;
      full: string;
      seq: string;
      index: number;
    }>(
      'decided_traces',
      `SELECT org_id, trace_id, toString(countIf(NOT sampled)) AS summaries, toString(countIf(sampled)) AS full,
         toString(minIf(log_seq, sampled)) AS seq, argMinIf(log_index, (log_seq, log_index), sampled) AS index
       FROM (${select('sampled', 'spans')} UNION ALL ${select('true', 'span_texts_recent')} UNION ALL ${select('true', 'span_texts')})
       GROUP BY org_id, trace_id`,
      { partition, from: fromSeq },
    );
    return new Map(
      rows.map(({ org_id, trace_id, summaries, full, seq, index }): [string, FullFrom] => {
        const key = traceKey(org_id, trace_id);
        if (summaries === '0') return [key, { log_seq: 0, log_index: 0 }];
        return [key, full === '0' ? { log_seq: Infinity, log_index: 0 } : { log_seq: Number(seq), log_index: index }];
      }),
    );
  }

  async #recallTraces(partition: number, memory: PartitionMemory): Promise<void> {
    const read = {
      name: 'trace_hashes',
      sql: `SELECT ${TRACE_HASH_SQL} FROM traces WHERE partition = {partition:UInt16} AND sign = 1 FORMAT RowBinary`,
      params: { partition },
      timeoutMs: READ_TIMEOUT_MS,
    };
    await this.#client.records(read, HASH_BYTES, (records) => {
      for (let at = 0; at < records.length; at += HASH_BYTES) memory.trace(records.readUInt32LE(at));
    });
  }

  async #recallIds(
    { partition, checkpoint, since }: { partition: number; checkpoint: number; since: number },
    memory: PartitionMemory,
  ): Promise<void> {
    const read = {
      name: 'window_ids',
      sql: `SELECT event_key, toUnixTimestamp(received_at), ${ORG_HIGH_SQL}, ${ORG_LOW_SQL} FROM spans
        WHERE partition = {partition:UInt16} AND received_at >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') AND log_seq <= {checkpoint:UInt64} AND log_sub = 0 FORMAT RowBinary`,
      params: { partition, since, checkpoint },
      timeoutMs: READ_TIMEOUT_MS,
    };
    await this.#client.records(read, ID_BYTES, (records) => {
      for (let at = 0; at < records.length; at += ID_BYTES) {
        const high = records.readUInt32LE(at + 4) ^ records.readUInt32LE(at + 12);
        const low = records.readUInt32LE(at) ^ records.readUInt32LE(at + 16);
        memory.id(high >>> 0, low >>> 0, records.readUInt32LE(at + 8) * 1000);
      }
    });
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown>): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
  }

  async #command(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
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
