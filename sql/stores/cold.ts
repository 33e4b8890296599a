// Tables of cold storage: the list of objects, the texts that a run exports, and the texts that a
// restore brings back. Days are whole numbers since 1970-01-01 (UTC). A text is identified by its
// log position (PLACE), which never changes.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { NAMES, PLACE, STRUCTURE } from './cold_columns.ts';
import { endUnpacks, unpackTexts, type WordsOf } from './cold_unpack.ts';

/** Texts of an organization on one day. */
const OF_DAY = `org_id = {org_id:String} AND started_at >= toDateTime64(toDate({day:UInt16}), 3, 'UTC') AND started_at < toDateTime64(toDate({day:UInt16}) + 1, 3, 'UTC')`;

/**
 * Settings of an export. The row group bounds what a restore, and the engine in both directions,
 * keep in memory.
 */
const PARQUET = `SETTINGS output_format_parquet_row_group_size = 20000, output_format_parquet_row_group_size_bytes = 33554432,
  output_format_parquet_write_bloom_filter = 0, output_format_parquet_write_page_index = 0, output_format_parquet_compression_method = 'zstd',
  output_format_parquet_parallel_encoding = 0, max_threads = 1, max_block_size = 4096`;

const READ_MS = 60_000;
/** Timeout of the transfer of one object, however slow its bucket is. */
const TRANSFER_MS = 6 * 3_600_000;
const INSERT_MS = 600_000;

const count = z.coerce.number();
const coldState = z.enum(['writing', 'verified', 'dropped', 'deleted']);
const coldObject = z.object({
  org_id: z.string(),
  on_day: z.int(),
  state: coldState,
  object_key: z.string(),
  rows: count,
  bytes: count,
  sha256: z.string(),
  exported_ms: count,
  dropped_as_of: z.int(),
  next_key: z.string(),
  run: z.string(),
  version: count,
});
/** State of an organization's day in cold storage. */
export type ColdObject = Omit<z.infer<typeof coldObject>, 'on_day'> & { day: number };

export interface OrgDay {
  org_id: string;
  day: number;
}

/** Day that a run exports. */
export interface DueDay extends OrgDay {
  rows: number;
  /** Texts that were never in an object. */
  fresh: number;
}

export class ColdTables {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /**
   * Returns the objects of an organization by day, from `since` to `until` inclusive, without
   * deleted ones.
   */
  async objects(org_id: string, range: { since?: number | null; until?: number | null } = {}): Promise<ColdObject[]> {
    return this.#objects(
      'org_id = {org_id:String} AND day >= toDate({since:UInt16}) AND day <= toDate({until:UInt16})',
      {
        org_id,
        since: range.since ?? 0,
        until: range.until ?? 65_535,
      },
    );
  }

  async object({ org_id, day }: OrgDay): Promise<ColdObject | null> {
    return (await this.objects(org_id, { since: day, until: day }))[0] ?? null;
  }

  /**
   * Returns the objects that a run left unfinished: half written, or with an obsolete object still
   * to delete.
   */
  async unfinished(): Promise<ColdObject[]> {
    return this.#objects("next_key != ''", {});
  }

  /**
   * Returns the objects whose day is not after the cutoff of their organization;
   * sql/stores/retention.ts builds the condition.
   */
  async objectsDue(condition: string, params: Record<string, unknown>): Promise<ColdObject[]> {
    return this.#objects(condition, params);
  }

  async #objects(where: string, params: Record<string, unknown>): Promise<ColdObject[]> {
    const rows = await this.#rows(
      'cold_objects',
      `SELECT org_id, toUInt16(day) AS on_day, toString(state) AS state, object_key, rows, bytes, sha256, toUnixTimestamp64Milli(exported_at) AS exported_ms,
         toUInt16(dropped_as_of) AS dropped_as_of, next_key, run, version
       FROM cold_objects FINAL WHERE state != 'deleted' AND ${where} ORDER BY org_id, day`,
      params,
    );
    return z
      .array(coldObject)
      .parse(rows)
      .map(({ on_day, ...object }) => ({ ...object, day: on_day }));
  }

  /** Writes the next state of a day. */
  async write(object: Omit<ColdObject, 'version'>, before: ColdObject | null): Promise<ColdObject> {
    // The clock may stand still or go back, but the new state always gets a newer version.
    const version = Math.max(Date.now(), (before?.version ?? 0) + 1);
    const { exported_ms, ...cells } = object;
    await this.#client.execute({
      name: 'cold_write',
      sql: `INSERT INTO cold_objects (org_id, day, state, object_key, rows, bytes, sha256, exported_at, dropped_as_of, next_key, run, version)
        SELECT org_id, toDate(day), state, object_key, rows, bytes, sha256, fromUnixTimestamp64Milli(exported_ms, 'UTC'), toDate(dropped_as_of), next_key, run, version
        FROM input('org_id String, day UInt16, state String, object_key String, rows UInt64, bytes UInt64, sha256 String, exported_ms Int64, dropped_as_of UInt16, next_key String, run String, version UInt64') FORMAT JSONEachRow`,
      body: JSON.stringify({ ...cells, exported_ms, version }),
      timeoutMs: READ_MS,
    });
    return { ...object, version };
  }

  /**
   * Marks every day that a run has verified as dropped, and every verified day of an earlier run
   * whose texts are gone already.
   * @returns the number of days
   */
  async writeDropped(run: string, asOf: number): Promise<number> {
    const { written_rows } = await this.#client.execute({
      name: 'cold_write_dropped',
      sql: `INSERT INTO cold_objects (org_id, day, state, object_key, rows, bytes, sha256, exported_at, dropped_as_of, next_key, run, version)
        SELECT org_id, day, 'dropped', object_key, rows, bytes, sha256, exported_at, toDate({as_of:UInt16}), next_key, run, version + 1
        FROM cold_objects FINAL WHERE state = 'verified' AND (run = {run:String} OR (org_id, day) NOT IN (
          SELECT org_id, toDate(started_at) FROM span_texts
          WHERE (org_id, toDate(started_at)) IN (SELECT org_id, day FROM cold_objects FINAL WHERE state = 'verified')))
        SETTINGS optimize_use_projections = 0`,
      params: { run, as_of: asOf },
      timeoutMs: READ_MS,
    });
    return written_rows;
  }

  /** Returns the days that a run exports with their numbers of texts, by organization and day. */
  async dueDays(run: string): Promise<DueDay[]> {
    const rows = await this.#rows(
      'cold_due_days',
      `SELECT org_id, toUInt16(day) AS on_day, count() AS rows, countIf(NOT restored) AS fresh
       FROM (SELECT org_id, day, ${PLACE}, min(restored) AS restored FROM cold_rows WHERE run = {run:String} GROUP BY org_id, day, ${PLACE})
       GROUP BY org_id, day ORDER BY org_id, day`,
      { run },
    );
    return z
      .array(z.object({ org_id: z.string(), on_day: z.int(), rows: count, fresh: count }))
      .parse(rows)
      .map(({ on_day, ...row }) => ({ ...row, day: on_day }));
  }

  /**
   * Returns the runs that left log positions behind; `needed` is true while a day that the run
   * verified is not dropped.
   */
  async runs(): Promise<{ run: string; needed: boolean }[]> {
    const rows = await this.#rows(
      'cold_runs',
      "SELECT DISTINCT run, run IN (SELECT run FROM cold_objects FINAL WHERE state = 'verified') AS needed FROM cold_rows",
      {},
    );
    return z
      .array(z.object({ run: z.string(), needed: z.int() }))
      .parse(rows)
      .map(({ run, needed }) => ({ run, needed: needed === 1 }));
  }

  async forgetRun(run: string): Promise<void> {
    await this.#run('cold_forget_run', 'ALTER TABLE cold_rows DROP PARTITION {run:String}', { run });
  }

  /**
   * Returns the number of fresh texts of a day in a run that an earlier run did not put into the
   * day's object.
   */
  async uncovered({ org_id, day }: OrgDay, run: string, earlier: string): Promise<number> {
    const of = (name: string): string =>
      `SELECT ${PLACE} FROM cold_rows WHERE run = {${name}:String} AND org_id = {org_id:String} AND day = toDate({day:UInt16})`;
    const [row] = await this.#rows(
      'cold_uncovered',
      `SELECT count() AS n FROM (${of('run')} AND NOT restored) WHERE (${PLACE}) NOT IN (${of('earlier')})`,
      {
        run,
        earlier,
        org_id,
        day,
      },
    );
    return Number((row as { n?: string } | undefined)?.n ?? 0);
  }

  /** Yields the texts of a day that a run exports as Parquet, each once. */
  exportDay({ org_id, day }: OrgDay, run: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    return this.#client.bytes({
      name: 'cold_export',
      sql: `SELECT ${NAMES} FROM span_texts WHERE ${OF_DAY} AND (${PLACE}) IN (
          SELECT ${PLACE} FROM cold_rows WHERE run = {run:String} AND org_id = {org_id:String} AND day = toDate({day:UInt16})
        ) LIMIT 1 BY ${PLACE} ${PARQUET} FORMAT Parquet`,
      params: { org_id, day, run },
      timeoutMs: TRANSFER_MS,
      signal,
    });
  }

  /** Yields the texts of a task as Parquet, each once. */
  exportTask(task: string, signal: AbortSignal): AsyncGenerator<Buffer> {
    return this.#client.bytes({
      name: 'cold_export_task',
      sql: `SELECT ${NAMES} FROM cold_staging WHERE task = {task:String} LIMIT 1 BY ${PLACE} ${PARQUET} FORMAT Parquet`,
      params: { task },
      timeoutMs: TRANSFER_MS,
      signal,
    });
  }

  /**
   * Stages rows of a Parquet file for a task.
   * @param traceIds only the rows of these traces; null for all rows
   */
  async stage(task: string, file: Buffer, traceIds: readonly string[] | null): Promise<void> {
    await this.#client.execute({
      name: 'cold_stage',
      sql: `INSERT INTO cold_staging (task, ${NAMES}) SELECT {task:String}, ${NAMES} FROM input('${STRUCTURE}')
        ${traceIds === null ? '' : 'WHERE trace_id IN {trace_ids:Array(String)}'} SETTINGS max_threads = 1 FORMAT Parquet`,
      params: { task, ...(traceIds === null ? {} : { trace_ids: traceIds }) },
      body: file,
      timeoutMs: INSERT_MS,
    });
  }

  /** Stages the fresh texts of a day that a run exports. */
  async stageDay(task: string, { org_id, day }: OrgDay, run: string): Promise<void> {
    await this.#client.execute({
      name: 'cold_stage_day',
      sql: `INSERT INTO cold_staging (task, ${NAMES}) SELECT {task:String}, ${NAMES} FROM span_texts WHERE ${OF_DAY} AND (${PLACE}) IN (
          SELECT ${PLACE} FROM cold_rows WHERE run = {run:String} AND org_id = {org_id:String} AND day = toDate({day:UInt16}) AND NOT restored
        ) SETTINGS max_threads = 1`,
      params: { task, org_id, day, run },
      timeoutMs: INSERT_MS,
    });
  }

  /** Returns the number of distinct texts that a task has staged, of one day or in all. */
  async staged(task: string, day?: number): Promise<{ rows: number }> {
    const ofDay = day === undefined ? '' : ` AND toDate(started_at) = toDate({day:UInt16})`;
    const [row] = await this.#rows(
      'cold_staged',
      `SELECT uniqExact(${PLACE}) AS rows FROM cold_staging WHERE task = {task:String}${ofDay}`,
      {
        task,
        ...(day === undefined ? {} : { day }),
      },
    );
    return z.object({ rows: count }).parse(row);
  }

  /**
   * Removes staged texts of a task. The condition is the caller's own SQL over the columns of a
   * text.
   */
  async unstage(task: string, condition: string, params: Record<string, unknown>): Promise<void> {
    await this.#run(
      'cold_unstage',
      `DELETE FROM cold_staging WHERE task = {task:String} AND (${condition}) SETTINGS lightweight_deletes_sync = 1`,
      {
        ...params,
        task,
      },
    );
  }

  /** Restores the texts of a task; see sql/stores/cold_unpack.ts. */
  unpack(
    task: { task: string; org_id: string },
    stamps: { restoredOn: number; dropOn: number },
    wordsOf: WordsOf,
    signal: AbortSignal,
  ): Promise<number> {
    return unpackTexts(this.#client, task, stamps, wordsOf, signal);
  }

  /** Cancels the statements that a former worker left running for a task. */
  endUnpacks(task: string): Promise<void> {
    return endUnpacks(this.#client, task);
  }

  async dropTask(task: string): Promise<void> {
    await this.#run('cold_drop_task', 'ALTER TABLE cold_staging DROP PARTITION {task:String}', { task });
  }

  /** Returns the tasks with staged texts. */
  async tasks(): Promise<string[]> {
    const rows = await this.#rows('cold_tasks', 'SELECT DISTINCT task FROM cold_staging', {});
    return z
      .array(z.object({ task: z.string() }))
      .parse(rows)
      .map(({ task }) => task);
  }

  /**
   * Returns the days between which the spans of traces started, and the number of traces that the
   * organization has.
   */
  async daysOfTraces(
    org_id: string,
    traceIds: readonly string[],
  ): Promise<{ traces: number; ranges: { from: number; to: number }[] }> {
    const rows = await this.#rows(
      'cold_days_of_traces',
      `SELECT toUInt16(toDate(min(first_at))) AS from_day, toUInt16(toDate(max(last_at))) AS to_day FROM trace_lookup
       WHERE org_id = {org_id:String} AND trace_key IN (SELECT sipHash64(arrayJoin({trace_ids:Array(String)}))) GROUP BY trace_key`,
      { org_id, trace_ids: traceIds },
    );
    const ranges = z.array(z.object({ from_day: z.int(), to_day: z.int() })).parse(rows);
    return { traces: ranges.length, ranges: ranges.map(({ from_day, to_day }) => ({ from: from_day, to: to_day })) };
  }

  async #rows(name: string, sql: string, params: Record<string, unknown>): Promise<unknown[]> {
    return this.#client.rows<unknown>({ name, sql, params, timeoutMs: READ_MS });
  }

  async #run(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: INSERT_MS });
  }
}
