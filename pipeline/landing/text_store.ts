// Reads the parts of span_texts_recent for the text mover, and moves their rows to span_texts.
import type { ClickHouse } from '../../sql/client/client.ts';
import { type Fences, MOVER_PARTITION, tuples } from './fences.ts';
import { ANY_TIMES, FENCE, SPAN_TEXTS } from './tables.ts';
import type { RecentPart, TextStore } from './text_mover.ts';

const QUERY_TIMEOUT_MS = 60_000;

export class ClickHouseTextStore implements TextStore {
  readonly #client: ClickHouse;
  readonly #fences: Fences;

  constructor(client: ClickHouse, fences: Fences) {
    this.#client = client;
    this.#fences = fences;
  }

  takeMoverFence(workerId: string): Promise<number> {
    return this.#fences.raiseForMover(workerId);
  }

  async recentParts(): Promise<RecentPart[]> {
    const rows = await this.#client.rows<{ name: string; rows: string; bytes: string; age: string; seq: string }>({
      name: 'recent_parts',
      sql: `SELECT p.name AS name, toString(p.rows) AS rows, toString(p.data_uncompressed_bytes) AS bytes, toString(dateDiff('second', p.modification_time, now())) AS age, toString(s.seq) AS seq
       FROM system.parts AS p INNER JOIN (SELECT _part AS part, min(log_seq) AS seq FROM span_texts_recent GROUP BY _part) AS s ON s.part = p.name
       WHERE p.database = currentDatabase() AND p.table = 'span_texts_recent' AND p.active AND p.rows > 0`,
      timeoutMs: QUERY_TIMEOUT_MS,
    });
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
      timeoutMs: QUERY_TIMEOUT_MS,
    });
    return (await this.#fences.fencedOff([[MOVER_PARTITION, epoch]])).length === 0;
  }

  async dropPart(name: string): Promise<void> {
    await this.#client.execute({
      name: 'drop_recent_part',
      sql: 'ALTER TABLE span_texts_recent DROP PART {name:String}',
      params: { name },
      timeoutMs: QUERY_TIMEOUT_MS,
    });
  }
}
