// Columns of a text in cold storage, which are those of an object and of cold_staging.

/**
 * Columns of a text in an object, with their types. Objects of older versions have more columns, which
 * the engine ignores.
 */
const COLUMNS = [
  ['org_id', 'String'],
  ['started_at', "DateTime64(3, 'UTC')"],
  ['trace_id', 'String'],
  ['span_id', 'String'],
  ['event_key', 'UInt64'],
  ['model', 'String'],
  ['outcome', 'String'],
  ['cost_usd', 'Decimal(18, 12)'],
  ['prompt', 'String'],
  ['response', 'String'],
  ['dl', 'UInt32'],
  ['partition', 'UInt16'],
  ['log_seq', 'UInt64'],
  ['log_index', 'UInt32'],
  ['log_sub', 'UInt32'],
] as const;
/** Names of the columns, as a list in SQL. */
export const NAMES = COLUMNS.map(([name]) => name).join(', ');
/** Their structure, for input(). */
export const STRUCTURE = COLUMNS.map(([name, type]) => `${name} ${type}`)
  .join(', ')
  .replaceAll("'", "\\'");
/** Columns of the log position, which identifies a text and never changes. */
export const PLACE = 'partition, log_seq, log_index, log_sub';
