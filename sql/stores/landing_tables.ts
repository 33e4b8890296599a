// Tables that landing writes, as data: the structure of a row on the wire and how the store reads
// it. Rows travel through input(), so that one statement converts them (times are milliseconds, ids
// hexadecimal) and rejects the rows of partitions that the writer no longer owns. Rows of spans and
// texts, which are most of the bytes, travel as one block of the Native format; the others as
// JSONCompactEachRow.
import { type BlockColumn, type Cells, cellsBytes, encodeBlock } from '../client/native_block.ts';

export type LandingTable = 'spans' | 'span_texts_recent' | 'traces' | 'usage_events' | 'judge_scores';

export interface TableSpec {
  readonly table: LandingTable;
  /** Columns of the table, in the order of `select`. */
  readonly columns: readonly string[];
  /** Structure of a wire row, for input(). */
  readonly structure: string;
  /** Expressions over the wire row, one for each column. */
  readonly select: readonly string[];
  /** Clause between input() and WHERE, for a wire row that expands to several rows. */
  readonly expand: string;
  /** Wire columns of a table whose rows travel as a block; null for one whose rows travel as JSON. */
  readonly block: readonly BlockColumn[] | null;
}

/** A table whose rows travel as blocks. Their last columns are those of POSITION. */
export interface BlockSpec extends TableSpec {
  readonly block: readonly BlockColumn[];
}

/** A row on the wire: a JSON array, or the cells of a block, in the structure of its table. */
export type WireRow = string | Cells;

/** [column, wire type, expression over the wire value; undefined for the value itself] */
type Column = readonly [string, string, string?];

const time = (column: string): Column => [column, 'Int64', `fromUnixTimestamp64Milli(${column}, 'UTC')`];
const POSITION: readonly Column[] = [
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
  ['log_index', 'UInt32'],
  ['log_sub', 'UInt32'],
];

function blockSpec(table: LandingTable, columns: readonly Column[]): BlockSpec {
  const all = [...columns, ...POSITION];
  return { ...spec(table, all), block: wireColumns(all) };
}

const wireColumns = (columns: readonly Column[]): BlockColumn[] =>
  columns.flatMap(([name, type]) => (type === '' ? [] : [{ name, type }]));

function spec(table: LandingTable, columns: readonly Column[], expand = ''): TableSpec {
  return {
    table,
    columns: columns.map(([name]) => name),
    structure: wireColumns(columns)
      .map(({ name, type }) => `${name} ${type}`)
      .join(', '),
    select: columns.map(([name, , expression]) => expression ?? name),
    expand,
    block: null,
  };
}

export const SPANS = blockSpec('spans', [
  ['org_id', 'LowCardinality(String)'],
  time('started_at'),
  time('ended_at'),
  time('received_at'),
  ['trace_id', 'String'],
  ['span_id', 'String'],
  ['parent_span_id', 'String'],
  ['event_key', 'String', 'reinterpretAsUInt64(reverse(unhex(event_key)))'],
  ['kind', 'LowCardinality(String)'],
  ['name', 'LowCardinality(String)'],
  ['model', 'LowCardinality(String)'],
  ['provider', 'LowCardinality(String)'],
  ['source_format', 'LowCardinality(String)'],
  ['outcome', 'LowCardinality(String)'],
  ['agent_id', 'LowCardinality(String)'],
  ['department', 'LowCardinality(String)'],
  ['realm', 'LowCardinality(String)'],
  ['environment', 'LowCardinality(String)'],
  ['service', 'LowCardinality(String)'],
  ['release', 'LowCardinality(String)'],
  ['prompt_name', 'LowCardinality(String)'],
  ['prompt_version', 'LowCardinality(String)'],
  ['session_id', 'String'],
  ['user_id', 'String'],
  ['tags', 'Array(String)'],
  ['input_tokens', 'UInt32'],
  ['output_tokens', 'UInt32'],
  ['cached_input_tokens', 'UInt32'],
  ['first_token_ms', 'UInt32'],
  ['cache_write_tokens', 'UInt32'],
  ['reasoning_tokens', 'UInt32'],
  ['cost_usd', 'Decimal(18, 12)'],
  ['price_source', 'LowCardinality(String)'],
  ['price_input_usd_per_mtok', 'Nullable(Float64)'],
  ['price_output_usd_per_mtok', 'Nullable(Float64)'],
  ['price_cached_input_usd_per_mtok', 'Nullable(Float64)'],
  ['storage_bytes', 'UInt32'],
  ['sandbox_seconds', 'Decimal(18, 6)'],
  ['attributes', 'String'],
  ['error_named', 'Bool'],
  ['sampled', 'Bool'],
  ['flags', 'UInt16'],
]);

export const SPAN_TEXTS = blockSpec('span_texts_recent', [
  ['org_id', 'LowCardinality(String)'],
  time('started_at'),
  ['trace_id', 'String'],
  ['span_id', 'String'],
  ['event_key', 'String', 'reinterpretAsUInt64(reverse(unhex(event_key)))'],
  ['name', 'LowCardinality(String)'],
  ['model', 'LowCardinality(String)'],
  ['outcome', 'LowCardinality(String)'],
  ['cost_usd', 'Decimal(18, 12)'],
  ['flags', 'UInt16'],
  ['prompt', 'String'],
  ['response', 'String'],
  ['error_text', 'String'],
  ['words', 'String'],
  ['dl', 'UInt32'],
  ['drop_on', 'UInt16', 'toDate(drop_on)'],
]);

export const TRACES = spec('traces', [
  ['org_id', 'String'],
  time('anchor'),
  ['trace_key', '', 'sipHash64(trace_id)'],
  ['trace_id', 'String'],
  time('started_at'),
  time('ended_at'),
  ['root_at', 'Nullable(Int64)', "fromUnixTimestamp64Milli(root_at, 'UTC')"],
  ['root_span_id', 'String'],
  ['root_span_name', 'String'],
  ['agent_id', 'String'],
  ['outcome', 'LowCardinality(String)'],
  ['session_id', 'String'],
  ['user_id', 'String'],
  ['tags', 'Array(String)'],
  ['spans', 'UInt32'],
  ['input_tokens', 'UInt64'],
  ['output_tokens', 'UInt64'],
  ['cost_usd', 'Decimal(38, 12)'],
  ['sampled', 'Bool'],
  ['forced_from', 'UInt64'],
  ['described', 'Bool'],
  ['models', 'Array(LowCardinality(String))'],
  ['source_formats', 'Array(LowCardinality(String))'],
  ['departments', 'Array(LowCardinality(String))'],
  ['realms', 'Array(LowCardinality(String))'],
  ['prompts', 'Array(LowCardinality(String))'],
  ['backfilled', 'Bool'],
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
  ['sign', 'Int8'],
  ['version', '', 'log_seq'],
]);

export const USAGE_EVENTS = spec('usage_events', [
  ['org_id', 'String'],
  ['hour', 'Int64', "toDateTime(intDiv(hour, 1000), 'UTC')"],
  ['day', 'UInt16', 'toDate(day)'],
  ['agent_id', 'String'],
  ['key_id', 'String'],
  ['model', 'LowCardinality(String)'],
  ['department', 'String'],
  ['realm', 'String'],
  time('last_received_at'),
  ['events', 'UInt64'],
  ['input_tokens', 'UInt64'],
  ['output_tokens', 'UInt64'],
  ['storage_bytes', 'UInt64'],
  ['sandbox_seconds', 'Decimal(38, 6)'],
  ['cost_usd', 'Decimal(38, 12)'],
  ['outcome_names', 'Array(String)'],
  ['outcome_values', 'Array(Decimal(38, 12))'],
  ['correction', 'UInt64'],
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
]);

/**
 * A wire row holds the scores of all rules for one trace and expands to one row for each judge, so
 * that the trace's own fields are sent once. The store writes at least as many rows as were sent.
 */
export const JUDGE_SCORES = spec(
  'judge_scores',
  [
    ['org_id', 'String'],
    ['judge_id', 'Array(String)'],
    ['eval_id', '', "''"],
    ['trace_id', 'String'],
    ['judge_version', 'Array(UInt32)'],
    ['judge_name', 'Array(String)'],
    ['agent_id', 'String'],
    time('started_at'),
    ['item_index', '', '0'],
    ['score', 'Array(Nullable(Float64))'],
    ['verdict', 'Array(LowCardinality(String))'],
    ['reason', 'Array(String)'],
    time('scored_at'),
    ['partition', 'UInt16'],
    ['log_seq', 'UInt64'],
  ],
  'ARRAY JOIN judge_id, judge_version, judge_name, score, verdict, reason',
);

/**
 * Expression for the partitions whose newest fence has the writer's epoch; rows of other partitions
 * are not written. It is empty for a statement that its writer has given up (giveUpStatement in
 * landing_fences.ts). Parameters: `owned`, the (partition, epoch) pairs that the writer owns, and
 * `statement`, its query id.
 */
export const FENCE = `(
  SELECT if(max(f.given_up), [], groupArrayIf(f.partition, has({owned:Array(Tuple(UInt16, UInt64))}, (f.partition, f.epoch))))
  FROM (SELECT partition, max(epoch) AS epoch, max(worker_id = {statement:String}) AS given_up FROM landing_fences GROUP BY partition) AS f
)`;

/**
 * An event may have started at any time, so one insert may create parts of any number of months or
 * weeks. The engine's own limit would reject all rows of such an insert, from all organizations, on
 * every attempt.
 */
export const ANY_TIMES = 'max_partitions_per_insert_block = 0';

/** Returns the statement that lands rows of a table. Its parameters are those of FENCE. */
export function landingStatement({ table, columns, structure, select, expand, block }: TableSpec): string {
  const format = block === null ? 'JSONCompactEachRow' : 'Native';
  return `INSERT INTO ${table} (${columns.join(', ')}) SELECT ${select.join(', ')} FROM input('${structure}') ${expand} WHERE has(${FENCE}, partition) SETTINGS ${ANY_TIMES} FORMAT ${format}`;
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

/** Returns the position in the log of a row that travels in a block. */
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
