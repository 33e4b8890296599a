// Statements of an erasure: find traces, record them, delete every row of them, and count what is
// left. Guarantees: a mutation rewrites every part that holds such a row without it, so afterwards
// no part that is read or merged holds the row; rows that retention masked earlier are deleted too,
// and so are the postings of all texts that are gone. Everything may be repeated. The engine removes
// replaced parts from the disk later (old_parts_lifetime, 8 minutes). A store is one shard;
// erasure_of_shards.ts carries out an erasure in all of them.
import { z } from 'zod';
import type { ClickHouse } from '../client/client.ts';
import { eraseDeadPostings } from './posting_rewrites.ts';
import { BELOW_MASK, deleteRows, waitForMutations, waitForMoves } from './rewrites.ts';

const TIMEOUT_MS = 110_000;

/** Maximum depth of replays of replays. */
export const REPLAYS_DEEP_MAX = 100;

const count = z.coerce.number();
const LIST = "SELECT trace_key FROM erasures WHERE job_id = {job_id:String} AND kind = 'trace'";
const NAMES = "SELECT name FROM erasures WHERE job_id = {job_id:String} AND kind = 'trace'";

/** Log position of the store up to which rows of a partition are meant. */
const MARK = '{marks:Array(UInt64)}[partition + 1]';

/** Table that holds rows of traces. */
export interface ErasedTable {
  table: string;
  /** Condition for rows that landed up to MARK, if the table records the log position. */
  upTo?: string;
  /** True for a table without trace_key. */
  byName?: true;
}

/**
 * Tables in the order in which to empty them: texts that are still to be moved before moved ones.
 */
export const ERASED_TABLES: readonly ErasedTable[] = [
  { table: 'cold_staging', byName: true },
  { table: 'span_texts_recent', upTo: `log_seq <= ${MARK}` },
  { table: 'span_texts', upTo: `log_seq <= ${MARK}` },
  { table: 'incident_traces' },
  { table: 'judge_scores' },
  { table: 'user_scores' },
  { table: 'traces', upTo: `version <= ${MARK}` },
  { table: 'spans', upTo: `log_seq <= ${MARK}` },
  // The last one. Reads by id need the bounds of a trace, so without them nobody would find what is
  // left of it.
  {
    table: 'trace_lookup',
    upTo: `trace_key NOT IN (SELECT trace_key FROM spans WHERE org_id = {org_id:String} AND log_seq > ${MARK})`,
  },
];

/** Names under which a span's attributes may hold a person or session, besides its columns. */
const ALIASES: Readonly<Record<string, readonly string[]>> = {
  user_id: ['user_id', 'enduser.id', 'user.id'],
  session_id: ['session_id', 'session.id'],
};
/** Columns of spans and traces that a match may name. */
const COLUMNS: ReadonlySet<string> = new Set(['user_id', 'session_id', 'agent_id', 'trace_id']);

const PLACE = 'partition, log_seq, log_index, log_sub';

/** Returns the condition for an attribute that is stored as a reference to the text of its span. */
function refersTo(column: 'prompt' | 'response'): string {
  const texts = ['span_texts_recent', 'span_texts'].map(
    (table) => `SELECT ${PLACE} FROM ${table} WHERE org_id = {org_id:String} AND ${column} IN {values:Array(String)}`,
  );
  return `(JSONExtractString(attributes, {name_0:String}, '$ref') = '${column}' AND (${PLACE}) IN (${texts.join(' UNION ALL ')}))`;
}

/** Organization and job of an erasure. */
export interface Scope {
  org_id: string;
  job_id: string;
}

export interface EraseMatch {
  attribute: string;
  /** A row matches any of these values. */
  values: readonly string[];
  /** Text of a span that may stand in for the attribute. */
  text?: 'prompt' | 'response' | undefined;
}

export class ErasureStore {
  readonly #client: ClickHouse;

  constructor(client: ClickHouse) {
    this.#client = client;
  }

  /**
   * Records the traces that contain a match and their replays, the days of their spans, and the
   * number of rows. May be repeated.
   */
  async collect(scope: Scope, match: EraseMatch): Promise<void> {
    await this.collectMatches(scope, match);
    await this.collectReplays(scope);
    await this.collectCounts(scope);
  }

  /** Records the traces of this shard that contain a match. */
  async collectMatches(scope: Scope, { attribute, values, text }: EraseMatch): Promise<void> {
    const column = COLUMNS.has(attribute) ? `${attribute} IN {values:Array(String)}` : null;
    const named = attribute === 'agent_id' || attribute === 'trace_id' ? [] : (ALIASES[attribute] ?? [attribute]);
    const params = {
      ...scope,
      values,
      ...Object.fromEntries(named.map((name, index) => [`name_${index}`, name])),
    };
    const stored = named.map((_, index) => {
      const path = `attributes, {name_${index}:String}`;
      return `if(JSONType(${path}) = 'String', JSONExtractString(${path}), JSONExtractRaw(${path})) IN {values:Array(String)}`;
    });
    if (text !== undefined) stored.push(refersTo(text));
    const inSpans = `SELECT DISTINCT trace_id FROM spans WHERE org_id = {org_id:String} AND (${[...(column === null ? [] : [column]), ...stored].join(' OR ')})`;
    // Traces whose own row names the person although the span that did is gone.
    const inTraces =
      column === null ? null : `SELECT DISTINCT trace_id FROM traces WHERE org_id = {org_id:String} AND ${column}`;
    for (const matches of [inSpans, ...(inTraces === null ? [] : [inTraces])])
      await this.#run(
        'erase_collect',
        `INSERT INTO erasures (job_id, kind, name, rows) SELECT {job_id:String}, 'trace', trace_id, 0 FROM (${matches}) WHERE trace_id NOT IN (${NAMES})`,
        params,
      );
  }

  /**
   * Records the days on which spans of the recorded traces started in this shard, and the number of
   * their rows by table unless it is recorded already.
   */
  async collectCounts(scope: Scope): Promise<void> {
    await this.#run(
      'erase_days',
      `INSERT INTO erasures (job_id, kind, name, rows)
       SELECT {job_id:String}, 'day', toString(toUInt16(toDate(started_at))), count() FROM spans WHERE ${rowsOf()} GROUP BY toDate(started_at)`,
      { ...scope },
    );
    if ((await this.found(scope)).size > 0) return;
    const counts = ERASED_TABLES.map(
      ({ table, byName }) => `SELECT '${table}' AS place, count() AS n FROM ${table} WHERE ${rowsOf(byName)}`,
    );
    await this.#run(
      'erase_found',
      // The projection of texts by document may return masked ones.
      `INSERT INTO erasures (job_id, kind, name, rows) SELECT {job_id:String}, 'found', place, n FROM (${counts.join(' UNION ALL ')}) SETTINGS optimize_use_projections = 0`,
      { ...scope },
    );
  }

  /**
   * Records the replays of the recorded traces that are in this shard. A replay repeats the question
   * of its trace, and the call of an LLM judge contains question and answer. Both may lack the
   * person's name.
   */
  async collectReplays(scope: Scope): Promise<void> {
    let traces = await this.traceCount(scope);
    for (let depth = 0; traces > 0 && depth < REPLAYS_DEEP_MAX; depth++) {
      await this.#run(
        'erase_replays',
        `INSERT INTO erasures (job_id, kind, name, rows) SELECT {job_id:String}, 'trace', trace_id, 0 FROM (
           SELECT DISTINCT trace_id FROM spans WHERE org_id = {org_id:String} AND (
             (position(attributes, '"replay_of":') > 0 AND JSONExtractString(attributes, 'replay_of') IN (${NAMES}))
             OR (position(attributes, '"judged_trace_id":') > 0 AND JSONExtractString(attributes, 'judged_trace_id') IN (${NAMES}))
           )) WHERE trace_id NOT IN (${NAMES})`,
        { ...scope },
      );
      const now = await this.traceCount(scope);
      if (now === traces) return;
      traces = now;
    }
  }

  /** Records traces that other shards have found. */
  async add({ job_id }: Scope, names: readonly string[]): Promise<void> {
    await this.#client.execute({
      name: 'erase_add',
      sql: `INSERT INTO erasures (job_id, kind, name, rows) SELECT {job_id:String}, 'trace', name, 0 FROM input('name String') WHERE name NOT IN (${NAMES}) FORMAT JSONEachRow`,
      params: { job_id },
      body: names.map((name) => JSON.stringify({ name })).join('\n'),
      timeoutMs: TIMEOUT_MS,
    });
  }

  /** Returns the number of rows of each table before any was deleted. */
  async found({ job_id }: Scope): Promise<Map<string, number>> {
    const rows = await this.#rows(
      'erase_read_found',
      "SELECT name, max(rows) AS n FROM erasures WHERE job_id = {job_id:String} AND kind = 'found' GROUP BY name",
      { job_id },
    );
    return new Map(
      z
        .array(z.object({ name: z.string(), n: count }))
        .parse(rows)
        .map(({ name, n }) => [name, n]),
    );
  }

  async traceCount({ job_id }: Scope): Promise<number> {
    return this.#count(
      'erase_traces',
      `SELECT uniqExact(name) AS n FROM erasures WHERE job_id = {job_id:String} AND kind = 'trace'`,
      {
        job_id,
      },
    );
  }

  /** Returns a page of the recorded traces, in the order of their ids, after the given one. */
  async traces({ job_id }: Scope, after: string, limit: number): Promise<string[]> {
    const rows = await this.#rows(
      'erase_page',
      "SELECT DISTINCT name FROM erasures WHERE job_id = {job_id:String} AND kind = 'trace' AND name > {after:String} ORDER BY name LIMIT {limit:UInt32}",
      { job_id, after, limit },
    );
    return z
      .array(z.object({ name: z.string() }))
      .parse(rows)
      .map(({ name }) => name);
  }

  /** Returns those of the given traces that are recorded. */
  async listed({ job_id }: Scope, traceIds: readonly string[]): Promise<Set<string>> {
    const rows = await this.#rows(
      'erase_listed',
      "SELECT DISTINCT name FROM erasures WHERE job_id = {job_id:String} AND kind = 'trace' AND name IN (SELECT arrayJoin({trace_ids:Array(String)}))",
      { job_id, trace_ids: traceIds },
    );
    return new Set(
      z
        .array(z.object({ name: z.string() }))
        .parse(rows)
        .map(({ name }) => name),
    );
  }

  /** Returns the days, since 1970-01-01 (UTC), on which spans of the traces started. */
  async days({ job_id }: Scope): Promise<number[]> {
    const rows = await this.#rows(
      'erase_read_days',
      "SELECT DISTINCT toUInt16(name) AS on_day FROM erasures WHERE job_id = {job_id:String} AND kind = 'day' ORDER BY on_day",
      { job_id },
    );
    return z
      .array(z.object({ on_day: z.int() }))
      .parse(rows)
      .map(({ on_day }) => on_day);
  }

  /** Returns the condition, over the columns of a text, for texts of the recorded traces. */
  texts({ job_id }: Scope): { sql: string; params: Record<string, unknown> } {
    return { sql: `trace_id IN (${NAMES})`, params: { job_id } };
  }

  /** Returns errors of the recorded traces that incidents may show, by cluster. */
  async samples(scope: Scope, limit: number): Promise<{ cluster_id: string; sample: string }[]> {
    const rows = await this.#rows(
      'erase_samples',
      `SELECT DISTINCT cluster_id, sample FROM incident_traces WHERE ${rowsOf()} AND sample != '' LIMIT {limit:UInt32}`,
      { ...scope, limit },
    );
    return z.array(z.object({ cluster_id: z.string(), sample: z.string() })).parse(rows);
  }

  /**
   * Empties the samples of incidents that are errors of the recorded traces. Call it before the
   * rows of the traces are deleted.
   */
  async emptySamples(scope: Scope, signal: AbortSignal): Promise<void> {
    const where = `org_id = {org_id:String} AND sample != '' AND (cluster_id, sample) IN (SELECT cluster_id, sample FROM incident_traces WHERE ${rowsOf()})`;
    const params = { ...scope };
    if ((await this.#count('erase_incidents', `SELECT count() AS n FROM incidents WHERE ${where}`, params)) === 0)
      return;
    await this.#run(
      'erase_incident_samples',
      `ALTER TABLE incidents UPDATE sample = '' WHERE ${where} SETTINGS mutations_sync = 0, allow_nondeterministic_mutations = 1`,
      params,
    );
    await waitForMutations(this.#client, 'incidents', scope.job_id, signal);
  }

  /**
   * Deletes the rows of the recorded traces from every table, and then the postings of texts that are
   * gone.
   * @param marks null for all rows; otherwise only rows that landed up to these log positions of the
   * store, by partition
   */
  async erase(scope: Scope, marks: readonly number[] | null, signal: AbortSignal): Promise<void> {
    for (const table of ERASED_TABLES) {
      signal.throwIfAborted();
      // A running move may have read texts before; afterwards they are in the other table.
      if (table.table === 'span_texts') await waitForMoves(this.#client, signal);
      await this.#eraseFrom(table, scope, marks, signal);
    }
    await eraseDeadPostings(this.#client, signal);
  }

  /**
   * Returns the number of rows that are left by table, masked ones included; only tables that hold
   * some.
   */
  async remaining(scope: Scope, marks: readonly number[]): Promise<Map<string, number>> {
    const left = new Map<string, number>();
    for (const table of ERASED_TABLES) {
      const rows = await this.#count(
        'erase_remaining',
        `SELECT count() AS n FROM ${table.table} WHERE ${conditionOf(table, marks)} ${BELOW_MASK}`,
        { ...scope, marks },
      );
      if (rows > 0) left.set(table.table, rows);
    }
    return left;
  }

  /** Deletes the records of a job. */
  async forget(job_id: string): Promise<void> {
    await this.#run('erase_forget', 'ALTER TABLE erasures DROP PARTITION {job_id:String}', { job_id });
  }

  /** Returns the jobs that have records. */
  async jobs(): Promise<string[]> {
    const rows = await this.#rows('erase_jobs', 'SELECT DISTINCT job_id FROM erasures', {});
    return z
      .array(z.object({ job_id: z.string() }))
      .parse(rows)
      .map(({ job_id }) => job_id);
  }

  async #eraseFrom(
    erased: ErasedTable,
    scope: Scope,
    marks: readonly number[] | null,
    signal: AbortSignal,
  ): Promise<void> {
    const params = marks === null ? { ...scope } : { ...scope, marks };
    await deleteRows(
      this.#client,
      { table: erased.table, where: conditionOf(erased, marks), params, mine: scope.job_id },
      signal,
    );
  }

  async #count(name: string, sql: string, params: Record<string, unknown>): Promise<number> {
    const [row] = await this.#rows(name, sql, params);
    return z.object({ n: count }).parse(row).n;
  }

  async #rows(name: string, sql: string, params: Record<string, unknown>): Promise<unknown[]> {
    return this.#client.rows<unknown>({ name, sql, params, timeoutMs: TIMEOUT_MS });
  }

  async #run(name: string, sql: string, params: Record<string, unknown>): Promise<void> {
    await this.#client.execute({ name, sql, params, timeoutMs: TIMEOUT_MS });
  }
}

/** Returns the condition for rows of the traces. */
function rowsOf(byName?: boolean): string {
  return `org_id = {org_id:String} AND ${byName === true ? `trace_id IN (${NAMES})` : `trace_key IN (${LIST})`}`;
}

function conditionOf({ byName, upTo }: ErasedTable, marks: readonly number[] | null): string {
  return marks === null || upTo === undefined ? rowsOf(byName) : `${rowsOf(byName)} AND ${upTo}`;
}
