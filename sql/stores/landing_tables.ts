// Tables that landing writes, as data: the columns of a row on the wire. Rows travel as one block of the
// Native format whose columns have the types of the table, so the engine takes them as they are. Rows of
// judge_scores travel as JSONCompactEachRow through input(), which expands them.
//
// A constraint of each of these tables refuses the rows of partitions that their writer no longer owns; see
// landing_fences.ts.
import { type BlockColumn, type Cells, cellsBytes, encodeBlock } from '../client/native_block.ts';

export type LandingTable = 'spans' | 'span_texts_recent' | 'traces' | 'usage_events' | 'judge_scores';

export interface TableSpec {
  readonly table: LandingTable;
  /** Wire columns, which are columns of the table; null for a table whose rows travel as JSON. */
  readonly block: readonly BlockColumn[] | null;
  /** Statement without its settings and the format of the rows. */
  readonly insert: string;
}

/** A table whose rows travel as blocks. */
export interface BlockSpec extends TableSpec {
  readonly block: readonly BlockColumn[];
}

/** A row on the wire: the cells of a block, or a JSON array, in the order of the wire columns. */
export type WireRow = string | Cells;

/** [name, type] */
type Column = readonly [string, string];

const TIME = "DateTime64(3, 'UTC')";
const NAME = 'LowCardinality(String)';
const NAMES = `Array(${NAME})`;
const MONEY = 'Decimal(38, 12)';
const POSITION: readonly Column[] = [
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
  ['log_index', 'UInt32'],
  ['log_sub', 'UInt32'],
];

function blockSpec(table: LandingTable, columns: readonly Column[]): BlockSpec {
  const block = columns.map(([name, type]) => ({ name, type }));
  return { table, block, insert: `INSERT INTO ${table} (${block.map(({ name }) => name).join(', ')})` };
}

export const SPANS = blockSpec('spans', [
  ['org_id', NAME],
  ['started_at', TIME],
  ['ended_at', TIME],
  ['received_at', TIME],
  ['trace_id', 'String'],
  ['span_id', 'String'],
  ['parent_span_id', 'String'],
  ['event_key', 'UInt64'],
  ['kind', NAME],
  ['name', NAME],
  ['model', NAME],
  ['provider', NAME],
  ['source_format', NAME],
  ['outcome', NAME],
  ['agent_id', NAME],
  ['department', NAME],
  ['realm', NAME],
  ['environment', NAME],
  ['service', NAME],
  ['release', NAME],
  ['prompt_name', NAME],
  ['prompt_version', NAME],
  ['session_id', 'String'],
  ['user_id', 'String'],
  ['tags', NAMES],
  ['input_tokens', 'UInt32'],
  ['output_tokens', 'UInt32'],
  ['cached_input_tokens', 'UInt32'],
  ['first_token_ms', 'UInt32'],
  ['cache_write_tokens', 'UInt32'],
  ['reasoning_tokens', 'UInt32'],
  ['cost_usd', 'Decimal(18, 12)'],
  ['price_source', NAME],
  ['price_input_usd_per_mtok', 'Nullable(Float64)'],
  ['price_output_usd_per_mtok', 'Nullable(Float64)'],
  ['price_cached_input_usd_per_mtok', 'Nullable(Float64)'],
  ['storage_bytes', 'UInt32'],
  ['sandbox_seconds', 'Decimal(18, 6)'],
  ['attributes', 'String'],
  ['error_named', 'Bool'],
  ['sampled', 'Bool'],
  ['flags', 'UInt16'],
  ...POSITION,
]);

export const SPAN_TEXTS = blockSpec('span_texts_recent', [
  ['org_id', NAME],
  ['started_at', TIME],
  ['trace_id', 'String'],
  ['span_id', 'String'],
  ['event_key', 'UInt64'],
  ['name', NAME],
  ['model', NAME],
  ['outcome', NAME],
  ['cost_usd', 'Decimal(18, 12)'],
  ['flags', 'UInt16'],
  ['prompt', 'String'],
  ['response', 'String'],
  ['error_text', 'String'],
  ['words', 'String'],
  ['dl', 'UInt32'],
  ['drop_on', 'Date'],
  ...POSITION,
]);

/** The store derives `trace_key` from trace_id, and `version` from log_seq. */
export const TRACES = blockSpec('traces', [
  ['org_id', NAME],
  ['anchor', TIME],
  ['trace_id', 'String'],
  ['started_at', TIME],
  ['ended_at', TIME],
  ['root_at', `Nullable(${TIME})`],
  ['root_span_id', 'String'],
  ['root_span_name', NAME],
  ['agent_id', NAME],
  ['outcome', NAME],
  ['session_id', 'String'],
  ['user_id', 'String'],
  ['tags', NAMES],
  ['spans', 'UInt32'],
  ['input_tokens', 'UInt64'],
  ['output_tokens', 'UInt64'],
  ['cost_usd', MONEY],
  ['sampled', 'Bool'],
  ['forced_from', 'UInt64'],
  ['described', 'Bool'],
  ['models', NAMES],
  ['source_formats', NAMES],
  ['departments', NAMES],
  ['realms', NAMES],
  ['prompts', NAMES],
  ['backfilled', 'Bool'],
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
  ['sign', 'Int8'],
]);

export const USAGE_EVENTS = blockSpec('usage_events', [
  ['org_id', NAME],
  ['hour', "DateTime('UTC')"],
  ['day', 'Date'],
  ['agent_id', NAME],
  ['key_id', NAME],
  ['model', NAME],
  ['department', NAME],
  ['realm', NAME],
  ['last_received_at', TIME],
  ['events', 'UInt64'],
  ['input_tokens', 'UInt64'],
  ['output_tokens', 'UInt64'],
  ['storage_bytes', 'UInt64'],
  ['sandbox_seconds', 'Decimal(38, 6)'],
  ['cost_usd', MONEY],
  ['outcome_names', NAMES],
  ['outcome_values', `Array(${MONEY})`],
  ['correction', 'UInt64'],
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
]);

/**
 * A wire row holds the scores of all rules for one trace and expands to one row for each judge, so
 * that the trace's own fields are sent once.
 */
export const JUDGE_SCORES: TableSpec = {
  table: 'judge_scores',
  block: null,
  insert: `INSERT INTO judge_scores (org_id, judge_id, eval_id, trace_id, judge_version, judge_name, agent_id, started_at, item_index, score, verdict, reason, scored_at, partition, log_seq)
    SELECT org_id, judge_id, '', trace_id, judge_version, judge_name, agent_id, fromUnixTimestamp64Milli(started_at, 'UTC'), 0, score, verdict, reason, fromUnixTimestamp64Milli(scored_at, 'UTC'), partition, log_seq
    FROM input('org_id String, judge_id Array(String), trace_id String, judge_version Array(UInt32), judge_name Array(String), agent_id String, started_at Int64, score Array(Nullable(Float64)), verdict Array(LowCardinality(String)), reason Array(String), scored_at Int64, partition UInt16, log_seq UInt64')
    ARRAY JOIN judge_id, judge_version, judge_name, score, verdict, reason`,
};

/**
 * An event may have started at any time, so one insert may create parts of any number of months or
 * weeks. The engine's own limit would reject all rows of such an insert, from all organizations, on
 * every attempt.
 */
export const ANY_TIMES = 'max_partitions_per_insert_block = 0';

/**
 * Skip indexes are built when parts merge: building six text indexes for the few rows of a landing takes
 * longer than reading those rows does.
 */
const INDEXED_LATER = 'materialize_skip_indexes_on_insert = 0';

/** Returns the statement that lands rows of a table. */
export function landingStatement({ table, insert, block }: TableSpec): string {
  const settings = table === 'traces' ? `${ANY_TIMES}, ${INDEXED_LATER}` : ANY_TIMES;
  return `${insert} SETTINGS ${settings} FORMAT ${block === null ? 'JSONCompactEachRow' : 'Native'}`;
}

/**
 * Returns the body of a landing statement.
 * @throws UnencodableCell if a row does not fit its table
 */
export function landingBody({ table, block }: TableSpec, rows: readonly WireRow[]): string | Buffer {
  if (block === null) return rows.join('\n');
  return encodeBlock(
    block,
    rows.map((row) => {
      if (typeof row === 'string') throw new Error(`rows of ${table} travel as cells`);
      return row;
    }),
  );
}

/** Returns the position in the log of a row whose last wire columns are those of POSITION. */
export function positionOf(
  { block }: BlockSpec,
  cells: Cells,
): { partition: number; log_seq: number; log_index: number; log_sub: number } {
  const [partition, log_seq, log_index, log_sub] = cells.slice(block.length - POSITION.length).map(Number);
  if (partition === undefined || log_seq === undefined || log_index === undefined || log_sub === undefined)
    throw new Error(`a row has ${cells.length} cells, not ${block.length}`);
  return { partition, log_seq, log_index, log_sub };
}

/** Returns the size of a row on the wire: in characters of JSON, or in bytes, roughly. */
export function wireBytes(row: WireRow): number {
  return typeof row === 'string' ? row.length : cellsBytes(row);
}

/** Returns a row as JSON, for a person to read. */
export function wireText(row: WireRow): string {
  if (typeof row === 'string') return row;
  return JSON.stringify(row, (_key, cell: unknown) => (typeof cell === 'bigint' ? String(cell) : cell));
}
