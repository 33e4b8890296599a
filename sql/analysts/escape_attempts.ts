// Statements with which the service tests, before it creates any analyst, that the engine confines
// analysts to their organization: attempts to reach other rows, tables, files, hosts and settings,
// each with the outcome that proves confinement. Data only; no I/O.

/** Organization that no row belongs to. */
const STRANGER = '!selftest';

/**
 * Expected outcome of an attempt that skips the parser's check: one of these error codes, or this
 * answer.
 */
type Expected = { codes: readonly number[] } | { text: string };

/**
 * Error codes: 497 ACCESS_DENIED, 60 UNKNOWN_TABLE, 164 READONLY, 452 SETTING_CONSTRAINT_VIOLATION,
 * 1001 STD_EXCEPTION.
 */
const DENIED = { codes: [497] };
const UNSEEN = { codes: [60, 497] };
/**
 * The embedded engine has no working folder, so file() fails before the engine checks rights
 * (ops/launch/clickhouse/launcher.ts).
 */
const NO_FILE = { codes: [497, 1001] };

export interface EscapeAttempt {
  /** Property that the attempt proves, in words for the person who asked for an analyst. */
  what: string;
  query: string;
  org_id: string | null;
  expected: Expected;
}

/**
 * Returns the attempts in the order in which to make them.
 * @param database database of the service
 * @param views database of the views
 */
export function escapeAttempts(database: string, views: string): EscapeAttempt[] {
  const stranger = (what: string, query: string, expected: Expected) => ({ what, query, org_id: STRANGER, expected });
  return [
    stranger('a plain query is answered', 'SELECT 1', { text: '1\n' }),
    stranger('its user can only read', "SELECT value FROM system.settings WHERE name = 'readonly'", { text: '1\n' }),
    stranger('its user reads the views', `SELECT count() FROM \`${views}\`.analyst_spans`, { text: '0\n' }),
    {
      what: 'no row is shown without an organization',
      query: `SELECT count() FROM (SELECT 1 FROM \`${views}\`.analyst_spans LIMIT 1)`,
      org_id: null,
      expected: { text: '0\n' },
    },
    {
      what: 'no use is shown without an organization',
      query: `SELECT count() FROM (SELECT 1 FROM \`${views}\`.analyst_usage LIMIT 1)`,
      org_id: null,
      expected: { text: '0\n' },
    },
    stranger("the service's tables are closed", `SELECT count() FROM \`${database}\`.spans`, DENIED),
    stranger("the operator's views are closed", `SELECT count() FROM \`${database}\`.analyst_spans`, DENIED),
    stranger(
      'indexes are closed (mergeTreeIndex)',
      `SELECT count() FROM mergeTreeIndex('${database}', 'spans')`,
      DENIED,
    ),
    stranger('files are closed', "SELECT * FROM file('/etc/hostname', 'LineAsString')", NO_FILE),
    stranger('addresses are closed (url)', "SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')", DENIED),
    stranger(
      'other servers are closed (remote)',
      `SELECT count() FROM remote('127.0.0.1', '${database}', 'spans')`,
      DENIED,
    ),
    stranger('the log of queries is closed', 'SELECT count() FROM system.query_log', UNSEEN),
    stranger('queries that run are closed', 'SELECT count() FROM system.processes', UNSEEN),
    stranger('memory cannot be raised', 'SELECT 1 SETTINGS max_memory_usage = 0', { codes: [164, 452] }),
    stranger('readonly cannot be lifted', 'SELECT 1 SETTINGS readonly = 0', { codes: [164, 452] }),
    stranger('time cannot be raised', 'SELECT 1 SETTINGS max_execution_time = 0', { codes: [164, 452] }),
    stranger('nothing can be written', `INSERT INTO \`${views}\`.analyst_spans (org_id) VALUES ('x')`, {
      codes: [164, 497],
    }),
  ];
}

/**
 * Queries that the parser's check must reject: the ways to name a function without calling it in
 * parentheses, and to change settings.
 */
export const HIDDEN_CALLS: readonly string[] = [
  "SELECT file('/etc/hostname')",
  "SELECT arrayMap(file, ['/etc/hostname'])",
  "SELECT * APPLY(file) FROM (SELECT '/etc/hostname')",
  "SELECT arrayMap(x -> `file`(x), ['/etc/hostname'])",
  'SELECT 1 ORDER BY 1 WITH FILL INTERPOLATE (o AS file(o))',
  'SELECT 1 SETTINGS max_threads = 1',
  "SELECT * FROM view(SELECT file('x'))",
  'SYSTEM FLUSH LOGS',
];

/** Query that lists every function of the engine in lower case, one per line. */
export const LIST_FUNCTIONS = 'SELECT DISTINCT lower(name) FROM system.functions';

/** Query that the parser's check must accept. */
export const HARMLESS_QUERY = 'SELECT count() AS n FROM analyst_spans';

/** Prefix with which the engine parses a query without running it. */
export const EXPLAIN_AST = 'EXPLAIN AST ';
