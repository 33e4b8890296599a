// What the pipeline asks of ClickHouse: landing statements behind a fence, what has landed, and what a new owner needs.
// Log positions here are the store's: JetStream sequence plus the log's base.
import { classifyStoreError, type ClickHouse } from '../../sql/client/client.ts';
import { ORG_HIGH_SQL, ORG_LOW_SQL } from '../domain/traces/event_identity.ts';
import { ANY_TIMES, FENCE, landingStatement, SPAN_TEXTS, type LandingTable, type TableSpec } from './tables.ts';
import type { AgentHeard } from './agent_activity.ts';
import { rowKey, traceRowKey, type LandingStore } from './landing.ts';
import type { PartitionRecord } from '../../schemas/records/partition.ts';
import type {
  FullFrom,
  HistoryOptions,
  HistoryStore,
  PartitionHistory,
  PartitionMemory,
} from '../worker/partition_state.ts';
import { storedTrace, TRACE_COLUMNS, type TraceRecord } from '../traces/stored_trace.ts';
import type { RecentPart, TextStore } from './text_mover.ts';
import { traceKey } from '../traces/open_traces.ts';
import { TRACE_HASH_SQL } from '../traces/trace_filter.ts';

/** The fence of the text mover, beside those of the partitions. */
const MOVER_PARTITION = 65_535;
/** Beside them too: query ids of statements that were given up. The table forgets those after a day. */
const GIVEN_UP_PARTITION = 65_534;
/** A landing that takes longer than this is given up and looked after. */
const INSERT_TIMEOUT_MS = 30_000;
const READ_TIMEOUT_MS = 60_000;
/** What is read next, from the checkpoint on, is older than what landed last by a landing or two. */
const RECALL_SLACK_MS = 600_000;
/** How long a new owner waits for statements of former owners to end by themselves before it ends them. */
const FORMER_WAIT_MS = 3000;
const LOOK_MS = 50;
/** Records of fixed width: a UInt32; a UInt64 and three UInt32. */
const HASH_BYTES = 4;
const ID_BYTES = 20;

const tuples = (pairs: readonly (readonly [number, number])[]): string =>
  `[${pairs.map(([partition, epoch]) => `(${String(partition)},${String(epoch)})`).join(',')}]`;

export class ClickHouseLandingStore implements LandingStore, HistoryStore, TextStore {
  readonly #client: ClickHouse;
  readonly #workerId: string;

  constructor(client: ClickHouse, workerId: string) {
    this.#client = client;
    this.#workerId = workerId;
  }

  classify(error: unknown): 'unavailable' | 'refused' {
    return classifyStoreError(error);
  }

  async insert(
    spec: TableSpec,
    lines: readonly string[],
    owned: readonly (readonly [number, number])[],
    queryId: string,
  ): Promise<number> {
    const { written_rows } = await this.#client.execute({
      name: `land_${spec.table}`,
      sql: landingStatement(spec),
      params: { owned: tuples(owned), statement: queryId },
      body: lines.join('\n'),
      query_id: queryId,
      timeoutMs: INSERT_TIMEOUT_MS,
    });
    return written_rows;
  }

  /** Resolves when the rows are in the store. */
  async writeActivity(heard: readonly AgentHeard[]): Promise<void> {
    await this.#client.execute({
      name: 'write_activity',
      sql: `INSERT INTO agent_activity (org_id, agent_id, last_seen_at, landed_at) SELECT org_id, agent_id, fromUnixTimestamp64Milli(last_seen_at, 'UTC'), now64(3, 'UTC')
        FROM input('org_id String, agent_id String, last_seen_at Int64') FORMAT JSONCompactEachRow`,
      body: heard
        .map(({ org_id, agent_id, last_seen_at }) => JSON.stringify([org_id, agent_id, last_seen_at]))
        .join('\n'),
      timeoutMs: INSERT_TIMEOUT_MS,
    });
  }

  /** Whether every insert is synced by itself, or rows are made durable otherwise before a checkpoint passes them. */
  async syncInserts(each: boolean): Promise<void> {
    const on = each ? '1' : '0';
    for (const table of [
      'spans',
      'span_texts',
      'span_texts_recent',
      'traces',
      'trace_lookup',
      'usage_events',
      'agent_activity',
      'judge_scores',
    ]) {
      await this.#command(
        'sync_inserts',
        `ALTER TABLE ${table} MODIFY SETTING fsync_after_insert = ${on}, fsync_part_directory = ${on}`,
        {},
      );
    }
  }

  /**
   * A statement may still lie in a socket, or before an engine that stood still: one that has not begun writes nothing once its id is
   * written here, and one that has is ended. So what it wrote can be looked up when this resolves, and will not become more.
   */
  async end(queryId: string): Promise<void> {
    await this.#command(
      'give_up_statement',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, 0, {statement:String}',
      { partition: GIVEN_UP_PARTITION, statement: queryId },
    );
    await this.#kill(queryId);
  }

  async #kill(queryId: string): Promise<void> {
    await this.#command('end_statement', 'KILL QUERY WHERE query_id = {id:String} SYNC', { id: queryId });
  }

  async fencedOff(owned: readonly (readonly [number, number])[]): Promise<number[]> {
    const rows = await this.#rows<{ partition: number; newest: string }>(
      'fenced_off',
      'SELECT partition, toString(max(epoch)) AS newest FROM landing_fences WHERE partition IN {partitions:Array(UInt16)} GROUP BY partition',
      { partitions: owned.map(([partition]) => partition) },
    );
    const newest = new Map(rows.map((row) => [row.partition, Number(row.newest)]));
    return owned.filter(([partition, epoch]) => (newest.get(partition) ?? 0) > epoch).map(([partition]) => partition);
  }

  async landedKeys(table: LandingTable, partition: number, fromSeq: number): Promise<ReadonlySet<string>> {
    const params = { partition, from: fromSeq };
    if (table === 'usage_events') {
      const rows = await this.#rows<{ seq: string }>(
        'landed_usage',
        'SELECT DISTINCT toString(log_seq) AS seq FROM usage_events WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}',
        params,
      );
      return new Set(rows.map(({ seq }) => seq));
    }
    if (table === 'traces') {
      const rows = await this.#rows<{ org_id: string; trace_id: string; version: string }>(
        'landed_traces',
        'SELECT org_id, trace_id, version FROM traces WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64} AND sign = 1',
        params,
      );
      return new Set(rows.map((row) => traceRowKey(row.org_id, row.trace_id, Number(row.version))));
    }
    // A score that is written twice is replaced: all are sent again.
    if (table === 'judge_scores') return new Set();
    const select = (name: string): string =>
      `SELECT log_seq, log_index, log_sub FROM ${name} WHERE partition = {partition:UInt16} AND log_seq >= {from:UInt64}`;
    const sql =
      table === 'spans' ? select('spans') : `${select('span_texts_recent')} UNION ALL ${select('span_texts')}`;
    const rows = await this.#rows<{ log_seq: string; log_index: number; log_sub: number }>(
      `landed_${table}`,
      sql,
      params,
    );
    return new Set(rows.map((row) => rowKey(Number(row.log_seq), row.log_index, row.log_sub)));
  }

  async mendLookup(partition: number, fromSeq: number): Promise<void> {
    await this.#command(
      'mend_lookup',
      `INSERT INTO trace_lookup (trace_key, org_id, first_at, last_at)
       SELECT sipHash64(s.trace_id), s.org_id, min(s.started_at), max(s.started_at) FROM spans AS s
       WHERE s.partition = {partition:UInt16} AND s.log_seq >= {from:UInt64} GROUP BY s.trace_id, s.org_id`,
      { partition, from: fromSeq },
    );
  }

  /**
   * Fences former owners off: after this resolves, no statement of theirs can still write to these partitions.
   * The fence is written first, so what starts later writes nothing; what had started is waited for.
   */
  async fence(owned: readonly (readonly [number, number])[]): Promise<void> {
    await this.#command(
      'raise_fence',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT o.1, o.2, {worker:String} FROM (SELECT arrayJoin({owned:Array(Tuple(UInt16, UInt64))}) AS o)',
      { owned: tuples(owned), worker: this.#workerId },
    );
    await this.#outlast('land-');
  }

  async takeMoverFence(workerId: string): Promise<number> {
    const [row] = await this.#rows<{ epoch: string }>(
      'mover_epoch',
      'SELECT toString(max(epoch) + 1) AS epoch FROM landing_fences WHERE partition = {partition:UInt16}',
      { partition: MOVER_PARTITION },
    );
    const epoch = Number(row?.epoch ?? 1);
    await this.#command(
      'raise_mover_fence',
      'INSERT INTO landing_fences (partition, epoch, worker_id) SELECT {partition:UInt16}, {epoch:UInt64}, {worker:String}',
      {
        partition: MOVER_PARTITION,
        epoch,
        worker: workerId,
      },
    );
    // Two that begin at once may have read the same epoch. Whoever wrote last sees the other; both may step back, and begin again later.
    const others = await this.#rows<{ worker_id: string }>(
      'mover_rivals',
      'SELECT DISTINCT worker_id FROM landing_fences WHERE partition = {partition:UInt16} AND epoch = {epoch:UInt64} AND worker_id != {worker:String}',
      { partition: MOVER_PARTITION, epoch, worker: workerId },
    );
    if (others.length > 0)
      throw new Error(
        `worker ${others.map(({ worker_id }) => worker_id).join(', ')} took the fence of the mover at the same time`,
      );
    await this.#outlast('move-');
    return epoch;
  }

  async recentParts(): Promise<RecentPart[]> {
    const rows = await this.#rows<{ name: string; rows: string; bytes: string; age: string; seq: string }>(
      'recent_parts',
      `SELECT p.name AS name, toString(p.rows) AS rows, toString(p.data_uncompressed_bytes) AS bytes, toString(dateDiff('second', p.modification_time, now())) AS age, toString(s.seq) AS seq
       FROM system.parts AS p INNER JOIN (SELECT _part AS part, min(log_seq) AS seq FROM span_texts_recent GROUP BY _part) AS s ON s.part = p.name
       WHERE p.database = currentDatabase() AND p.table = 'span_texts_recent' AND p.active AND p.rows > 0`,
      {},
    );
    return rows.map((row) => ({
      name: row.name,
      rows: Number(row.rows),
      bytes: Number(row.bytes),
      age_seconds: Number(row.age),
      log_seq_min: Number(row.seq),
    }));
  }

  async move(parts: readonly RecentPart[], epoch: number, queryId: string): Promise<boolean> {
    const columns = SPAN_TEXTS.columns.join(', ');
    const position = 'partition, log_seq, log_index, log_sub';
    await this.#client.execute({
      name: 'move_texts',
      sql: `INSERT INTO span_texts (${columns}) SELECT ${columns} FROM span_texts_recent
        WHERE _part IN {parts:Array(String)} AND has(${FENCE}, {mover:UInt16})
          AND (${position}) NOT IN (SELECT ${position} FROM span_texts WHERE log_seq >= {from:UInt64})
        SETTINGS max_threads = 1, max_insert_threads = 1, max_block_size = 1000000, min_insert_block_size_rows = 1000000, min_insert_block_size_bytes = 536870912, ${ANY_TIMES}`,
      params: {
        parts: parts.map((part) => part.name),
        owned: tuples([[MOVER_PARTITION, epoch]]),
        statement: queryId,
        mover: MOVER_PARTITION,
        from: Math.min(...parts.map((part) => part.log_seq_min)),
      },
      query_id: queryId,
      timeoutMs: READ_TIMEOUT_MS,
    });
    return (await this.fencedOff([[MOVER_PARTITION, epoch]])).length === 0;
  }

  async dropPart(name: string): Promise<void> {
    await this.#command('drop_recent_part', 'ALTER TABLE span_texts_recent DROP PART {name:String}', { name });
  }

  async partitionHistory(
    record: PartitionRecord,
    { logBase, windowMs, tail }: HistoryOptions,
    memory: PartitionMemory,
  ): Promise<PartitionHistory> {
    const { partition } = record;
    const checkpoint = logBase + record.checkpoint;
    const above = checkpoint + 1;
    // Power loss may have taken the look-up's rows of an insert whose spans survived; a repeated row changes nothing there.
    await this.mendLookup(partition, above);
    // A worker that died had not written what it landed after its last checkpoint.
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
      this.landedKeys('spans', partition, above),
      this.landedKeys('span_texts_recent', partition, above),
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
   * What tail sampling made of the traces with rows from a position on. A trace that was kept has no summary row after that; one that
   * was not may have events that a rule of their own kept. A trace of which only texts have landed was kept.
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

  /** Newest epoch that fences a partition; owners of a log that is new to the store count on from there, or they would be fenced off for good. */
  async newestEpoch(): Promise<number> {
    const [row] = await this.#rows<{ epoch: string }>(
      'newest_epoch',
      'SELECT toString(max(epoch)) AS epoch FROM landing_fences WHERE partition != {mover:UInt16}',
      { mover: MOVER_PARTITION },
    );
    return Number(row?.epoch ?? 0);
  }

  /** Newest log position that any table holds; a log that is new to the store counts on from there. */
  async newestPosition(): Promise<number> {
    const tables = ['spans', 'span_texts', 'span_texts_recent', 'traces', 'usage_events'];
    const [row] = await this.#rows<{ seq: string }>(
      'newest_position',
      `SELECT toString(max(seq)) AS seq FROM (${tables.map((table) => `SELECT max(log_seq) AS seq FROM ${table}`).join(' UNION ALL ')})`,
      {},
    );
    return Number(row?.seq ?? 0);
  }

  /**
   * Waits for statements that run now, and ends those that take too long: they began before the fence. This worker's own count
   * too, as it may have lost a partition in the middle of a landing and has it again.
   */
  async #outlast(prefix: string): Promise<void> {
    const running = async (): Promise<string[]> => {
      const rows = await this.#rows<{ query_id: string }>(
        'running_statements',
        'SELECT query_id FROM system.processes WHERE query_id LIKE {pattern:String} AND current_database = currentDatabase()',
        { pattern: `${prefix}%` },
      );
      return rows.map(({ query_id }) => query_id);
    };
    let left = await running();
    // From the first answer on: a store that stood still until now has had no time to end anything.
    const deadline = performance.now() + FORMER_WAIT_MS;
    while (left.length > 0) {
      if (performance.now() > deadline) {
        // Only killed: some are another's that owns its partitions still, and is told of it by an error. What has not begun meets the fence.
        await Promise.all(left.map((queryId) => this.#kill(queryId)));
        return;
      }
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      const now = new Set(await running());
      left = left.filter((queryId) => now.has(queryId));
    }
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
 * From when on the ids of a partition are recalled, milliseconds: the window before what landed last. That may be long ago, where the log
 * waited for the store longer than the window.
 */
function windowStart(windowMs: number, landedMs: number): number {
  const newest = landedMs > 0 ? Math.min(landedMs, Date.now()) : Date.now();
  return newest - windowMs - RECALL_SLACK_MS;
}
