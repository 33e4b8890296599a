// Lands rows in ClickHouse behind a fence, and looks up what has landed. Log positions are the
// store's: JetStream sequence plus log base.
import { classifyStoreError, type ClickHouse } from '../../sql/client/client.ts';
import type { AgentHeard } from './agent_activity.ts';
import { type Fences, type PartitionEpoch, tuples } from './fences.ts';
import { rowKey, traceRowKey, type LandingStore } from './lander.ts';
import { landingStatement, type LandingTable, type TableSpec } from './tables.ts';

/** A landing that takes longer is abandoned, and what it wrote is looked up. */
const INSERT_TIMEOUT_MS = 30_000;
const READ_TIMEOUT_MS = 60_000;

export class ClickHouseLandingStore implements LandingStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;

  constructor(client: ClickHouse, fences: Fences) {
    this.#client = client;
    this.#fences = fences;
  }

  classify(error: unknown): 'unavailable' | 'refused' {
    return classifyStoreError(error);
  }

  async insert(
    spec: TableSpec,
    lines: readonly string[],
    owned: readonly PartitionEpoch[],
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

  /** Resolves once the rows are in the store. */
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

  /**
   * Sets whether ClickHouse syncs every insert. If it does not, rows must be made durable otherwise
   * before each checkpoint.
   */
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

  end(queryId: string): Promise<void> {
    return this.#fences.giveUp(queryId);
  }

  fencedOff(owned: readonly PartitionEpoch[]): Promise<number[]> {
    return this.#fences.fencedOff(owned);
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
    // A repeated score replaces the former one, so all are sent again.
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

  async repairLookup(partition: number, fromSeq: number): Promise<void> {
    await this.#command(
      'mend_lookup',
      `INSERT INTO trace_lookup (trace_key, org_id, first_at, last_at)
       SELECT sipHash64(s.trace_id), s.org_id, min(s.started_at), max(s.started_at) FROM spans AS s
       WHERE s.partition = {partition:UInt16} AND s.log_seq >= {from:UInt64} GROUP BY s.trace_id, s.org_id`,
      { partition, from: fromSeq },
    );
  }

  /**
   * Returns the newest log position in any table. A log that is new to the store counts on from
   * there.
   */
  async newestPosition(): Promise<number> {
    const tables = ['spans', 'span_texts', 'span_texts_recent', 'traces', 'usage_events'];
    const [row] = await this.#rows<{ seq: string }>(
      'newest_position',
      `SELECT toString(max(seq)) AS seq FROM (${tables.map((table) => `SELECT max(log_seq) AS seq FROM ${table}`).join(' UNION ALL ')})`,
      {},
    );
    return Number(row?.seq ?? 0);
  }

  async #rows<T>(name: string, sql: string, params: Record<string, unknown>): Promise<T[]> {
    return this.#client.rows<T>({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
  }

  async #command(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: READ_TIMEOUT_MS });
  }
}
