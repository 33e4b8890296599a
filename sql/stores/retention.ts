// Statements of retention. Each statement decides for all organizations at once which rows are due:
// one cutoff for each organization with a policy of its own, one for all others, within a range of
// ids (CutoffParams). A run therefore has as many statements as tables and partitions, not as
// organizations. Guarantees: a part whose rows are all due is dropped whole (a part never changes,
// so rows that land meanwhile are safe); in other parts the engine masks the due rows in the
// background and deletes them with later merges. Every statement may be repeated.
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { dropPostingWeeks } from './posting_weeks.ts';
import { dropPart } from './rewrites.ts';

const READ_MS = 110_000;
const POLL_MS = 50;
/** Time after which a mutation that keeps failing is cancelled. */
const FAILING_MS_MAX = 60_000;
/** A month whose attributes are no larger than this is rewritten whenever any row of it is due. */
const REWRITE_BYTES_FREE = 256 * 1024 * 1024;
/** A larger month is rewritten once at least this share of its rows is due. */
const REWRITE_SHARE_MIN = 1 / 8;

/**
 * Tables with a projection that has an order of its own. The engine (26.7) leaves masked rows in such
 * a projection until the next merge, and a query that reads the projection returns them.
 */
const ORDERED_PROJECTIONS: ReadonlySet<string> = new Set(['span_texts', 'incident_traces', 'traces']);
/**
 * Columns that are reset in masked rows of a table. Search reads documents from a projection, and
 * skips texts that have neither a number nor words. Lists of a user's traces read a projection by
 * user, and no list asks for the empty user.
 */
const RESET: Readonly<Record<string, string>> = { span_texts: 'doc = 0, dl = 0', traces: "user_id = ''" };

const count = z.coerce.number();

/**
 * Cutoffs of the organizations in a range of ids. Days are whole numbers since 1970-01-01 (UTC).
 */
export interface CutoffParams {
  from: string;
  /** First id after the range; null if the range has no end. */
  until: string | null;
  /** Organizations with a cutoff of their own. */
  orgs: readonly string[];
  cutoffs: readonly number[];
  others: number;
}

export interface Condition {
  sql: string;
  params: Record<string, unknown>;
}

/** Returns the expression for the cutoff of a row's organization. */
function cutoffOf({ orgs, cutoffs, others }: CutoffParams, prefix = ''): Condition {
  const fallback = { [`${prefix}others`]: others };
  if (orgs.length === 0) return { sql: `{${prefix}others:Int32}`, params: fallback };
  return {
    sql: `transform(toString(org_id), {${prefix}orgs:Array(String)}, {${prefix}cutoffs:Array(Int32)}, {${prefix}others:Int32})`,
    params: { ...fallback, [`${prefix}orgs`]: orgs, [`${prefix}cutoffs`]: cutoffs },
  };
}

/** Returns the condition for the rows of the range that are due by a time column. */
export function dueBy(column: string, cutoffs: CutoffParams): Condition {
  const { from, until } = cutoffs;
  const cutoff = cutoffOf(cutoffs);
  const newest = Math.max(cutoffs.others, ...cutoffs.cutoffs);
  return {
    // The second condition follows from the third. The engine uses it to skip partitions.
    sql: `org_id >= {from:String}${until === null ? '' : ' AND org_id < {until:String}'}
      AND toDate(${column}) <= toDate({newest:UInt16}) AND toInt32(toDate(${column})) <= ${cutoff.sql}`,
    params: { ...cutoff.params, from, newest: Math.max(0, newest), ...(until === null ? {} : { until }) },
  };
}

/**
 * Returns the condition for rows of `traces` whose spans are all due: traces that ended by the
 * cutoff, and traces that ended later although none of their spans started after the cutoff.
 * trace_lookup holds the start of a trace's last span, so rows leave that table later than this
 * one.
 */
export function tracesDueBy(cutoffs: CutoffParams): Condition {
  const { sql: due, params } = dueBy('started_at', cutoffs);
  const { sql: cutoff } = cutoffOf(cutoffs);
  const endsLater = `toInt32(toDate(ended_at)) > ${cutoff}`;
  return {
    sql: `${due} AND (NOT (${endsLater}) OR (org_id, trace_key) NOT IN (
      SELECT org_id, trace_key FROM trace_lookup
      WHERE (trace_key, org_id) IN (SELECT trace_key, org_id FROM traces WHERE ${due} AND ${endsLater})
        AND toInt32(toDate(last_at)) > ${cutoff}))`,
    params,
  };
}

/**
 * Column that replacing rows share, and the condition that the newest of them meets when they are
 * due.
 */
export interface RowKey {
  column: string;
  where: string;
}

/** Returns the condition for all rows whose key has a newest row that is due. */
export function dueByKey(table: string, { column, where }: RowKey, due: Condition): Condition {
  return { ...due, sql: `${column} IN (SELECT ${column} FROM ${table} FINAL WHERE ${where} AND ${due.sql})` };
}

/** Returns true when any row can be due: a cutoff before the first day means never. */
export const canBeDue = ({ cutoffs, others }: CutoffParams): boolean => Math.max(others, ...cutoffs) >= 0;

/** Result of removing due rows from a table. */
export interface Removed {
  rows: number;
  parts_dropped: number;
  partitions_masked: number;
}

export class RetentionStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /**
   * Records the log positions of the texts that a run exports: texts due by `texts` that are not to
   * be deleted altogether.
   */
  async snapshot(run: string, texts: CutoffParams, telemetry: CutoffParams): Promise<void> {
    const due = dueBy('started_at', texts);
    const age = cutoffOf(texts);
    const deleted = cutoffOf(telemetry, 'deleted_');
    await this.#run(
      'retention_snapshot',
      `INSERT INTO cold_rows (run, org_id, day, partition, log_seq, log_index, log_sub, restored)
       SELECT {run:String}, org_id, toDate(started_at), partition, log_seq, log_index, log_sub, restored_on > toDate(0) FROM span_texts
       WHERE ${due.sql} AND toInt32(restored_on) <= ${age.sql} AND toInt32(toDate(started_at)) > ${deleted.sql}`,
      { ...due.params, ...deleted.params, run },
    );
  }

  /** Returns the number of due texts that the text mover has not moved to span_texts yet. */
  async waiting(texts: CutoffParams): Promise<number> {
    const due = dueBy('started_at', texts);
    return this.#count('retention_waiting', `SELECT count() AS n FROM span_texts_recent WHERE ${due.sql}`, due.params);
  }

  /**
   * Returns the condition for a share of the texts of a run that are in a verified object and may
   * be dropped. A share bounds the positions that the engine keeps in memory.
   */
  verified(run: string, share: number, shares: number): Condition {
    const days = `SELECT org_id, day FROM cold_objects FINAL WHERE run = {run:String} AND state = 'verified' AND cityHash64(org_id, day) % {shares:UInt32} = {share:UInt32}`;
    return {
      sql: `(org_id, toDate(started_at)) IN (${days}) AND (partition, log_seq, log_index, log_sub) IN (
        SELECT partition, log_seq, log_index, log_sub FROM cold_rows WHERE run = {run:String} AND (org_id, day) IN (${days}))`,
      params: { run, share, shares },
    };
  }

  /**
   * Removes due rows from a table. A part is dropped whole when the conditions cover all of its
   * rows together; they must not overlap.
   * @param signal ends the wait, not the work
   */
  async remove(table: string, conditions: readonly Condition[], signal: AbortSignal): Promise<Removed> {
    const due = await this.#dueParts(table, conditions);
    const removed: Removed = { rows: 0, parts_dropped: 0, partitions_masked: 0 };
    if (due.size === 0) return removed;
    const totals = await this.#partRows(table, [...due.keys()]);
    for (const [part, rows] of due) {
      signal.throwIfAborted();
      if (totals.get(part) !== rows || !(await dropPart(this.#client, table, part))) continue;
      removed.rows += rows;
      removed.parts_dropped += 1;
    }
    for (const { sql, params } of conditions) {
      const left = await this.#partitions(table, { sql, params });
      for (const { partition_id, rows } of left) {
        signal.throwIfAborted();
        await this.#run('retention_mask', maskStatement(table, inPartition(partition_id), sql), params);
        removed.rows += rows;
        removed.partitions_masked += 1;
      }
    }
    if (removed.partitions_masked > 0) await this.#settled(table, signal);
    return removed;
  }

  /** Drops the postings of weeks in which no text is left; see sql/stores/posting_weeks.ts. */
  dropPostings(signal: AbortSignal): Promise<number> {
    return dropPostingWeeks(this.#client, signal);
  }

  /**
   * Resets a column of due rows to its default by rewriting the column for the month; a large month
   * waits until enough of it is due. CLEAR COLUMN IN PARTITION would not do: while one waits, the
   * engine (26.7) reads the column of every partition as cleared, and merges in that time lose its
   * values permanently.
   * @returns the number of rows reset
   */
  async clear(
    table: string,
    column: string,
    empty: string,
    conditions: readonly Condition[],
    signal: AbortSignal,
  ): Promise<number> {
    const due = new Map<string, number>();
    for (const { sql, params } of conditions)
      for (const { partition_id, rows } of await this.#partitions(table, {
        sql: `${sql} AND ${column} != {empty:String}`,
        params: { ...params, empty },
      }))
        due.set(partition_id, (due.get(partition_id) ?? 0) + rows);
    let cleared = 0;
    for (const [partition_id, rows] of due) {
      signal.throwIfAborted();
      const { filled, all, bytes } = await this.#fill(table, column, empty, partition_id);
      if (rows < filled && bytes > REWRITE_BYTES_FREE && rows / Math.max(1, all) < REWRITE_SHARE_MIN) continue;
      for (const { sql, params } of conditions)
        await this.#run(
          'retention_empty',
          `ALTER TABLE ${table} UPDATE ${column} = {empty:String}${inPartition(partition_id)} WHERE ${sql} AND ${column} != {empty:String} SETTINGS mutations_sync = 0`,
          { ...params, empty },
        );
      cleared += rows;
    }
    if (cleared > 0) await this.#settled(table, signal);
    return cleared;
  }

  async #fill(
    table: string,
    column: string,
    empty: string,
    partition_id: string,
  ): Promise<{ filled: number; all: number; bytes: number }> {
    const [row] = await this.#rows(
      'retention_fill',
      `SELECT countIf(${column} != {empty:String}) AS filled, count() AS all,
         (SELECT sum(column_data_uncompressed_bytes) FROM system.parts_columns
          WHERE database = currentDatabase() AND table = {table:String} AND column = {column:String} AND active AND partition_id = {partition_id:String}) AS bytes
       FROM ${table} WHERE _partition_id = {partition_id:String}`,
      { table, column, empty, partition_id },
    );
    return z.object({ filled: count, all: count, bytes: count }).parse(row);
  }

  async #dueParts(table: string, conditions: readonly Condition[]): Promise<Map<string, number>> {
    const parts = new Map<string, number>();
    for (const { sql, params } of conditions) {
      const rows = await this.#rows(
        'retention_due_parts',
        `SELECT _part AS part, count() AS rows FROM ${table} WHERE ${sql} GROUP BY part ${unmasked(table)}`,
        params,
      );
      for (const { part, rows: due } of z.array(z.object({ part: z.string(), rows: count })).parse(rows))
        parts.set(part, (parts.get(part) ?? 0) + due);
    }
    return parts;
  }

  async #partRows(table: string, parts: readonly string[]): Promise<Map<string, number>> {
    const totals = new Map<string, number>();
    for (let at = 0; at < parts.length; at += PARTS_AT_ONCE) {
      const rows = await this.#rows(
        'retention_part_rows',
        `SELECT _part AS part, count() AS rows FROM ${table} WHERE _part IN {parts:Array(String)} GROUP BY part ${unmasked(table)}`,
        { parts: parts.slice(at, at + PARTS_AT_ONCE) },
      );
      for (const { part, rows: all } of z.array(z.object({ part: z.string(), rows: count })).parse(rows))
        totals.set(part, all);
    }
    return totals;
  }

  async #partitions(table: string, { sql, params }: Condition): Promise<{ partition_id: string; rows: number }[]> {
    const rows = await this.#rows(
      'retention_due_partitions',
      `SELECT _partition_id AS partition_id, count() AS rows FROM ${table} WHERE ${sql} GROUP BY partition_id ORDER BY partition_id ${unmasked(table)}`,
      params,
    );
    return z.array(z.object({ partition_id: z.string(), rows: count })).parse(rows);
  }

  /**
   * Resolves when no mutation of the table is running.
   * @throws Error when a mutation cannot be carried out; it is cancelled first
   */
  async #settled(table: string, signal: AbortSignal): Promise<void> {
    let failingSince: number | null = null;
    for (;;) {
      const rows = await this.#rows(
        'retention_mutations',
        // A repricing waits for its own mutations.
        "SELECT mutation_id, latest_fail_reason AS reason FROM system.mutations WHERE database = currentDatabase() AND table = {table:String} AND NOT is_done AND command NOT LIKE '%span_corrections%'",
        { table },
      );
      const open = z.array(z.object({ mutation_id: z.string(), reason: z.string() })).parse(rows);
      if (open.length === 0) return;
      const failing = open.find(({ reason }) => reason !== '');
      failingSince = failing === undefined ? null : (failingSince ?? performance.now());
      if (failing !== undefined && performance.now() - (failingSince ?? Infinity) > FAILING_MS_MAX) {
        // A failing mutation blocks every later one.
        await this.#run(
          'retention_give_up',
          'KILL MUTATION WHERE database = currentDatabase() AND table = {table:String} AND mutation_id = {id:String} SYNC',
          {
            table,
            id: failing.mutation_id,
          },
        );
        throw new Error(`rows of ${table} cannot be taken out: ${failing.reason}`);
      }
      await sleep(POLL_MS, undefined, { signal });
    }
  }

  async #count(name: string, sql: string, params: Record<string, unknown>): Promise<number> {
    const [row] = await this.#rows(name, sql, params);
    return z.object({ n: count }).parse(row).n;
  }

  async #rows(name: string, sql: string, params: Record<string, unknown>): Promise<unknown[]> {
    return this.#client.rows<unknown>({ name, sql, params, timeoutMs: READ_MS });
  }

  async #run(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: READ_MS });
  }
}

/** Returns the settings of a read that must not return masked rows. */
function unmasked(table: string): string {
  return ORDERED_PROJECTIONS.has(table) ? 'SETTINGS optimize_use_projections = 0' : '';
}

/** Returns the statement that masks rows of a table in the background. */
function maskStatement(table: string, partition: string, where: string): string {
  const reset = RESET[table];
  if (reset === undefined)
    return `DELETE FROM ${table}${partition} WHERE ${where} SETTINGS lightweight_deletes_sync = 0, allow_nondeterministic_mutations = 1`;
  // A DELETE FROM sets _row_exists alone, and ordered projections return the row until a merge (26.7).
  return `ALTER TABLE ${table} UPDATE _row_exists = 0, ${reset}${partition} WHERE ${where} SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1`;
}

/** Parts of one statement; a name is some 40 bytes. */
const PARTS_AT_ONCE = 1000;

/**
 * Returns the clause for one partition. The only partition of an unpartitioned table has the id
 * `all`.
 */
function inPartition(id: string): string {
  if (!/^[0-9A-Za-z_-]+$/.test(id)) throw new Error(`${id} is no id of a partition`);
  return id === 'all' ? '' : ` IN PARTITION ID '${id}'`;
}
