// Attacks by analysts, as data: queries and requests that try to reach a file, another
// organization's rows, keys, index contents, another host or the server's internals, or to exceed a
// limit. `{canary}` is replaced with the path of a file in the engine's folder, `{folder}` with the
// path of that folder.

export interface Attack {
  /** The query. Sent as the body unless `body` is set. */
  query: string;
  /** URL parameters in addition to the login. */
  url?: Record<string, string>;
  headers?: Record<string, string>;
  /** Sent instead of the query. */
  body?: Buffer;
  /**
   * The fence that rejects the attack.
   * - refused: both fences reject it.
   * - parser: only the service's check of the parse tree rejects it; the engine requires no
   *   privilege for it.
   * - engine: only the engine rejects it; the service cannot know the name.
   * - own: it is answered, with the organization's own rows or none.
   */
  by: 'refused' | 'parser' | 'engine' | 'own';
  /**
   * The result for the operator's own analyst, who queries the engine directly and may see every
   * organization. Default: refused.
   */
  operator?: 'answered' | 'refused' | 'not tried';
}

const refused = (query: string): Attack => ({ query, by: 'refused' });
const parser = (query: string, operator: Attack['operator'] = 'answered'): Attack => ({
  query,
  by: 'parser',
  operator,
});
/** Returns an attack on a file. The embedded engine gives no user access to files. */
const file = (query: string): Attack => ({ query, by: 'parser', operator: 'refused' });
const engine = (query: string): Attack => ({ query, by: 'engine' });
const own = (query: string): Attack => ({ query, by: 'own', operator: 'not tried' });

export const ATTACKS: readonly Attack[] = [
  // Files, through the scalar function and every way to name it.
  file("SELECT file('{canary}')"),
  file("SELECT FILE('{canary}')"),
  file("SELECT `file`('{canary}')"),
  file('SELECT "file"(\'{canary}\')'),
  file("SELECT `f\\x69le`('{canary}')"),
  file("SELECT/**/file /* x */ ('{canary}') -- y"),
  file("SELECT arrayMap(file, ['{canary}'])"),
  file("SELECT arrayMap(`f\\x69le`, ['{canary}'])"),
  file("SELECT arrayMap(x -> file(x), ['{canary}'])"),
  file("WITH (x -> file(x)) AS f SELECT f('{canary}')"),
  file("SELECT * APPLY(file) FROM (SELECT '{canary}')"),
  file("SELECT * APPLY(x -> file(x)) FROM (SELECT '{canary}')"),
  file("SELECT COLUMNS('p') APPLY file FROM (SELECT '{canary}' AS p)"),
  file("SELECT * REPLACE (file(p) AS p) FROM (SELECT '{canary}' AS p)"),
  file("SELECT (SELECT (SELECT file('{canary}')))"),
  file("WITH a AS (WITH b AS (SELECT file('{canary}') AS c) SELECT c FROM b) SELECT c FROM a"),
  file("SELECT 1 UNION ALL SELECT length(file('{canary}'))"),
  file("SELECT 1 WHERE file('{canary}') != ''"),
  file("SELECT count() FROM analyst_spans PREWHERE file('{canary}') != ''"),
  file("SELECT number FROM numbers(1) ORDER BY file('{canary}')"),
  file("SELECT count() FROM numbers(length(file('{canary}')))"),
  file("SELECT number FROM numbers(3) LIMIT length(file('{canary}'))"),
  file("SELECT number AS o FROM numbers(2) ORDER BY o WITH FILL TO length(file('{canary}'))"),
  file("SELECT sum(number) OVER (PARTITION BY file('{canary}')) FROM numbers(1)"),
  file("SELECT sum(number) OVER w FROM numbers(1) WINDOW w AS (ORDER BY file('{canary}'))"),
  file("SELECT count() FROM numbers(1) a JOIN numbers(1) b ON a.number = b.number AND file('{canary}') != ''"),
  file("SELECT sum(1) FILTER (WHERE file('{canary}') != '')"),
  parser("EXPLAIN SYNTAX SELECT file('{canary}')"),
  file("EXPLAIN QUERY TREE SELECT file('{canary}')"),
  file("DESCRIBE (SELECT file('{canary}'))"),
  file("SHOW TABLES WHERE file('{canary}') != ''"),
  file("SHOW COLUMNS FROM analyst_spans WHERE file('{canary}') != ''"),
  {
    query: "SELECT arrayMap({f:Identifier}, ['{canary}'])",
    url: { param_f: 'file' },
    by: 'parser',
    operator: 'refused',
  },
  file("SELECT CAST(file('{canary}') AS String)"),
  parser("SELECT * FROM values('a String', file('{canary}'))", 'refused'),
  refused("SELECT * FROM view(SELECT file('{folder}/users.xml'))"),
  refused("SELECT file('{folder}/users.xml')"),
  refused("SELECT file('{folder}/config.xml')"),
  refused("SELECT file('/etc/hostname')"),
  refused("SELECT file('/proc/self/../1/environ')"),
  // Files, through table functions and as tables.
  refused("SELECT * FROM file('{canary}', 'LineAsString')"),
  refused("SELECT * FROM fileCluster('c', '{canary}', 'LineAsString')"),
  engine("SELECT * FROM '{canary}'"),
  refused('SELECT * FROM default.`{canary}`'),
  refused("SELECT * FROM filesystem('{folder}')"),
  refused("SELECT * FROM icebergLocal('{folder}')"),
  refused("SELECT * FROM deltaLakeLocal('{folder}')"),
  refused("SELECT * FROM sqlite('{canary}', 'x')"),
  refused("SELECT * FROM executable('x', 'TSV', 'a String')"),
  refused("SELECT * FROM format(JSONEachRow, 'a String DEFAULT file(''{canary}'')', '{}')"),
  refused("SELECT 1 INTO OUTFILE '{folder}/written'"),
  refused("SELECT 1 INTO OUTFILE '{folder}/written' TRUNCATE FORMAT CSV"),
  refused("SELECT 1 FORMAT Template SETTINGS format_template_row = '{canary}'"),
  refused(
    "SELECT 1 AS a FORMAT Protobuf SETTINGS output_format_schema = '{folder}/written.proto', format_protobuf_use_autogenerated_schema = 1",
  ),
  { query: 'SELECT 1', url: { output_format_schema: '{folder}/written.proto' }, by: 'parser' },
  { query: 'SELECT 1', url: { format_schema: '{canary}:x', default_format: 'Protobuf' }, by: 'parser' },
  // Other hosts.
  refused("SELECT * FROM url('http://127.0.0.1:9/', 'LineAsString')"),
  refused("SELECT * FROM urlCluster('c', 'http://127.0.0.1:9/', 'LineAsString')"),
  refused("SELECT * FROM s3('http://127.0.0.1:9/b/k', 'CSV', 'a String')"),
  refused("SELECT * FROM remote('127.0.0.1', 'millrace', 'spans')"),
  refused("SELECT * FROM remoteSecure('127.0.0.1', 'millrace', 'spans')"),
  refused("SELECT * FROM cluster('default', 'millrace', 'spans')"),
  refused("SELECT * FROM clusterAllReplicas('default', 'millrace', 'spans')"),
  refused("SELECT * FROM mysql('127.0.0.1:9', 'd', 't', 'u', 'p')"),
  refused("SELECT * FROM postgresql('127.0.0.1:9', 'd', 't', 'u', 'p')"),
  refused("SELECT * FROM mongodb('127.0.0.1:9', 'd', 't', 'u', 'p')"),
  refused("SELECT * FROM redis('127.0.0.1:9', 'k', 'k String, v String')"),
  parser("SELECT aiGenerate('c', 'p')", 'refused'),
  parser("SELECT hasColumnInTable('127.0.0.1:9', 'app', 'x', 'millrace', 'spans', 'org_id')", 'refused'),
  // Other organizations' rows: tables, views over all organizations, and ways around the row
  // policy.
  refused('SELECT count() FROM millrace.spans'),
  { query: 'SELECT count() FROM millrace.analyst_spans', by: 'refused', operator: 'answered' },
  refused('SELECT count() FROM millrace.span_texts'),
  { query: "SELECT count() FROM merge('millrace', '.*')", by: 'refused', operator: 'answered' },
  // merge() reads only those matching tables that the user may read: the organization's own view.
  parser("SELECT count() FROM merge(REGEXP('.*'), 'spans')"),
  refused("SELECT count() FROM loop('millrace', 'spans')"),
  parser("SELECT * FROM viewIfPermitted(SELECT * FROM millrace.spans ELSE null('a String'))"),
  refused('SELECT 1 WHERE 1 IN (SELECT 1 FROM millrace.spans)'),
  refused("SELECT 1 WHERE 'org_b' IN millrace.spans"),
  { query: 'SELECT count() FROM {t:Identifier}', url: { param_t: 'millrace.spans' }, by: 'refused' },
  own("SELECT count() FROM analyst_texts WHERE throwIf(org_id != 'org_a') = 0 AND org_id = 'org_a'"),
  own('SELECT org_id, prompt FROM analyst_texts ORDER BY ALL'),
  own("SELECT count() FROM analyst_spans WHERE org_id = 'org_b' OR 1"),
  own(
    'SELECT a.org_id, b.org_id, count() FROM analyst_spans AS a LEFT JOIN analyst_texts AS b ON a.org_id != b.org_id OR 1 = 1 GROUP BY ALL',
  ),
  own('SELECT * FROM analyst_traces UNION ALL SELECT * FROM analyst_traces FORMAT JSONEachRow'),
  own('SELECT org_id, sum(spans) FROM analyst_costs_daily GROUP BY org_id WITH TOTALS'),
  own('SELECT * FROM (SELECT org_id FROM analyst_usage) WHERE org_id IN (SELECT org_id FROM analyst_spans)'),
  own("SELECT toInt32(substring(prompt, 1)) FROM analyst_texts WHERE prompt != ''"),
  // Keys and contents of indexes, and the amount of other organizations' data.
  refused("SELECT * FROM mergeTreeIndex('millrace', 'spans')"),
  refused("SELECT * FROM mergeTreeTextIndex('millrace', 'span_texts', 'ix_doc')"),
  refused('SELECT * FROM mergeTreeTextIndex(millrace, span_texts_recent, ix_doc)'),
  refused("SELECT * FROM mergeTreeProjection('millrace', 'spans', 'p_model')"),
  refused("SELECT * FROM mergeTreeAnalyzeIndexes('millrace', 'spans')"),
  parser('EXPLAIN indexes = 1 SELECT count() FROM analyst_spans'),
  parser('EXPLAIN ESTIMATE SELECT count() FROM analyst_spans'),
  parser('EXPLAIN PIPELINE SELECT count() FROM analyst_spans'),
  parser('SELECT * FROM (EXPLAIN indexes = 1 SELECT count() FROM analyst_spans)', 'refused'),
  // System tables, dictionaries and the server's internals.
  ...[
    'query_log',
    'processes',
    'parts',
    'parts_columns',
    'columns_cache',
    'users',
    'grants',
    'row_policies',
    'disks',
    'server_settings',
    'macros',
    'clusters',
    'dictionaries',
    'data_skipping_indices',
    'named_collections',
    'query_cache',
    'events',
    'errors',
    'text_log',
  ].map((table) => refused(`SELECT * FROM system.${table}`)),
  parser("SELECT dictGet('millrace.x', 'a', 1)", 'refused'),
  parser("SELECT joinGet('millrace.landing_fences', 'x', 1)", 'refused'),
  refused("SELECT * FROM dictionary('millrace.x')"),
  parser("SELECT getClientHTTPHeader('X-Millrace-Org')", 'refused'),
  parser("SELECT getClientHTTPHeader('X-ClickHouse-Key')", 'refused'),
  parser("SELECT getServerSetting('max_connections')"),
  parser('SELECT serverUUID()'),
  parser('SELECT hostName()'),
  parser('SELECT filesystemAvailable()'),
  parser('SELECT addressToLine(1)', 'refused'),
  parser('SELECT initialQueryID()'),
  parser('SELECT currentProfiles()'),
  parser("SELECT getMacro('x')", 'refused'),
  parser('SELECT sleep(0.001)'),
  // Function names inside strings.
  parser("SELECT arrayReduce('groupFormat(\\'CSV\\')', [1])", 'not tried'),
  parser("SELECT arrayReduce('aggThrow(0.5)', [1])", 'not tried'),
  parser("SELECT arrayReduce(concat('agg', 'Throw(0.5)'), [1])", 'not tried'),
  parser("WITH 'aggThrow(0.5)' AS f SELECT arrayReduce(f, [1])", 'not tried'),
  parser("SELECT arrayReduceInRanges('aggThrowState(0.5)', [(1, 1)], [1])", 'not tried'),
  parser("SELECT finalizeAggregation(initializeAggregation('aggThrowState(0.5)', 1))", 'not tried'),
  parser("SELECT finalizeAggregation(CAST('' AS AggregateFunction(groupFormat('CSV'), UInt8)))", 'not tried'),
  parser("SELECT CAST('', concat('AggregateFunction(groupFormat(1)', ', UInt8)'))", 'not tried'),
  {
    query: 'SELECT arrayReduce({f:String}, [1])',
    url: { param_f: 'aggThrow(0.5)' },
    by: 'parser',
    operator: 'not tried',
  },
  // Calls that keep running after their query is killed, or that crash the engine. The tests never
  // send them to the engine.
  ...[
    'length(h3kRing(geoToH3(37., 55., toUInt8(9)), 1000))',
    "editDistance(repeat('ab', 30000), repeat('ba', 30000))",
    "levenshteinDistanceUTF8(repeat('ab', 30000), repeat('ba', 30000))",
    'arrayLevenshteinDistance(range(1000000), arrayReverse(range(1000000)))',
    'pointInPolygon((1., 1.), arrayMap(x -> (cos(x), sin(x)), range(300000)))',
    "arrayMap(editDistance, [repeat('ab', 30000)], [repeat('ba', 30000)])",
    "arrayReduce('kolmogorovSmirnovTest(\\'two-sided\\', \\'exact\\')', range(100000), range(100000))",
    "JSONMergePatch(repeat('[', 200000))",
    "jsonMergePatch('{}', '{}')",
  ].map((call) => parser(`SELECT ${call}`, 'not tried')),
  parser("SELECT multiMatchAny('x', [repeat('a', 1001)])", 'not tried'),
  // The number of rows that the engine read, which includes rows of other organizations.
  ...['JSONEachRow', 'JSONStringsEachRow', 'JSONCompactEachRow', 'JSONCompactStringsEachRow'].flatMap(
    (format): Attack[] => [
      parser(`SELECT count() FROM analyst_spans FORMAT ${format}WithProgress`),
      {
        query: 'SELECT count() FROM analyst_spans',
        url: { default_format: `${format}WithProgress` },
        by: 'parser',
        operator: 'not tried',
      },
      {
        query: 'SELECT count() FROM analyst_spans',
        headers: { 'X-ClickHouse-Format': `${format}WithProgress` },
        by: 'parser',
        operator: 'not tried',
      },
    ],
  ),
  refused('SELECT 1 SETTINGS max_memory_usage = 0'),
  refused('SELECT 1 SETTINGS max_execution_time = 0'),
  refused('SELECT 1 SETTINGS readonly = 0'),
  refused('SELECT 1 SETTINGS allow_introspection_functions = 1'),
  refused("SELECT 1 SETTINGS additional_table_filters = {'analyst_spans': '1'}"),
  refused('SELECT * FROM (SELECT 1 SETTINGS use_query_cache = 1)'),
  refused('SET readonly = 0'),
  ...(
    [
      ['readonly', '0', 'own'],
      ['max_memory_usage', '0', 'parser'],
      ['max_execution_time', '600', 'parser'],
      ['session_id', 'x', 'parser'],
      ['role', 'x', 'parser'],
      ['additional_table_filters', '{}', 'parser'],
      ['decompress', '1', 'parser'],
      ['database', 'millrace', 'parser'],
      ['database', 'system', 'parser'],
      ['default_format', 'Template', 'parser'],
      ['stacktrace', '1', 'parser'],
      ['query_id', "x' OR 1", 'own'],
      ['quota_key', 'org_b', 'own'],
    ] as const
  ).map(([name, value, by]): Attack => ({
    query: 'SELECT org_id FROM analyst_spans',
    url: { [name]: value },
    by,
    operator: 'not tried',
  })),
  // Statements other than SELECT.
  refused("INSERT INTO analyst_spans (org_id) VALUES ('org_b')"),
  refused("INSERT INTO FUNCTION file('{folder}/written', 'CSV', 'a String') SELECT 'x'"),
  refused('CREATE TABLE x (a UInt8) ENGINE = Memory'),
  refused('CREATE TEMPORARY TABLE x (a UInt8)'),
  refused('CREATE FUNCTION f AS (x) -> file(x)'),
  refused('CREATE VIEW v AS SELECT 1'),
  refused('CREATE USER x'),
  refused('ALTER TABLE analyst_spans DELETE WHERE 1'),
  refused('DROP VIEW analyst_spans'),
  refused('KILL QUERY WHERE 1'),
  refused('SYSTEM FLUSH LOGS'),
  // The engine accepts these without effect: the user has no table whose merges it may stop, and no
  // role to set for the request.
  parser('SYSTEM STOP MERGES'),
  parser('SET ROLE ALL'),
  refused('EXECUTE AS app SELECT count() FROM millrace.spans'),
  refused('GRANT SELECT ON *.* TO org_analyst'),
  refused("BACKUP DATABASE millrace TO File('x')"),
  refused('CREATE TABLE a (x Int8) ENGINE = Memory PARALLEL WITH CREATE TABLE b (x Int8) ENGINE = Memory'),
  refused('SHOW CREATE USER app'),
  refused('SHOW ROW POLICIES'),
  refused('SELECT 1; SELECT 2'),
  refused('SELECT 1;\nDROP VIEW analyst_spans'),
  refused('CHECK TABLE millrace.spans'),
  refused('OPTIMIZE TABLE millrace.spans'),
  // Attacks through headers, URL parameters and the encoding of the body.
  {
    query: 'SELECT DISTINCT org_id FROM analyst_spans',
    headers: { 'X-Millrace-Org': 'org_b' },
    by: 'own',
    operator: 'answered',
  },
  {
    query: 'SELECT DISTINCT org_id FROM analyst_spans',
    headers: { 'x-millrace-org': 'org_b', X_Millrace_Org: 'org_b' },
    by: 'own',
    operator: 'answered',
  },
  { query: "ile('{canary}')", url: { query: 'SELECT f' }, by: 'refused' },
  { query: ", file('{canary}')", url: { query: 'SELECT 1' }, by: 'parser', operator: 'refused' },
  { query: '*/', url: { query: 'SELECT 1 /*' }, by: 'own', operator: 'answered' },
  { query: 'a NUL', body: Buffer.from("SELECT 1\0, file('x')"), by: 'parser', operator: 'refused' },
  { query: 'not UTF-8', body: Buffer.from([0x53, 0x45, 0x4c, 0xff, 0xfe]), by: 'refused' },
  { query: 'not gzip', headers: { 'Content-Encoding': 'gzip' }, body: Buffer.from('SELECT 1'), by: 'refused' },
  {
    query: 'an encoding that is not taken',
    headers: { 'Content-Encoding': 'lz4' },
    body: Buffer.from('SELECT 1'),
    by: 'refused',
  },
  { query: 'EXPLAIN AST graph = 1 SELECT 1', by: 'parser', operator: 'answered' },
  { query: "ast = 1 SELECT file('{canary}')", by: 'refused' },
];

/**
 * Every position of a query where an expression can stand, and where the parse tree must show it.
 * `{f}` is a function call.
 */
export const PLACES: readonly string[] = [
  'SELECT {f}',
  'SELECT {f} AS a, a',
  'SELECT -length({f}), NOT empty({f})',
  "SELECT 'x' || {f}",
  'SELECT {f}::String',
  'SELECT CAST({f} AS Nullable(String))',
  'SELECT [{f}][1], (1, {f}).2, map(1, {f})[1]',
  'SELECT [1][length({f})]',
  "SELECT CASE {f} WHEN 'a' THEN 1 ELSE 2 END",
  "SELECT CASE WHEN 1 THEN {f} ELSE 'b' END",
  "SELECT if(1, {f}, 'b'), 1 ? {f} : 'b'",
  'SELECT EXTRACT(YEAR FROM toDate({f}))',
  'SELECT now() + INTERVAL length({f}) DAY',
  "SELECT 1 WHERE {f} BETWEEN 'a' AND 'b'",
  "SELECT 1 WHERE 'a' BETWEEN 'a' AND {f}",
  "SELECT 1 WHERE 'a' IN (SELECT {f})",
  "SELECT 1 WHERE 'a' IN ({f})",
  "SELECT 1 WHERE 'a' LIKE {f} OR {f} IS NOT NULL",
  'SELECT EXISTS(SELECT {f})',
  'SELECT DISTINCT ON ({f}) 1',
  'SELECT * REPLACE ({f} AS x) FROM (SELECT 1 AS x)',
  'SELECT quantile(length({f}))(number) FROM numbers(3)',
  'SELECT sum(number) FILTER (WHERE {f} = 1) FROM numbers(3)',
  'SELECT countIf({f} = 1), groupArray({f})',
  'SELECT arrayFold((a, x) -> a || {f}, [1], 1)',
  'SELECT untuple((1, {f}))',
  'SELECT sum(number) OVER (PARTITION BY {f}) FROM numbers(3)',
  'SELECT sum(number) OVER (ORDER BY {f}) FROM numbers(3)',
  'SELECT sum(number) OVER (ORDER BY number ROWS BETWEEN length({f}) PRECEDING AND CURRENT ROW) FROM numbers(3)',
  'SELECT sum(number) OVER (ORDER BY number ROWS BETWEEN CURRENT ROW AND length({f}) FOLLOWING) FROM numbers(3)',
  'SELECT sum(number) OVER w FROM numbers(3) WINDOW w AS (PARTITION BY {f})',
  'WITH {f} AS a SELECT a',
  'WITH a AS (SELECT {f}) SELECT * FROM a',
  'WITH RECURSIVE a AS (SELECT 1 AS n UNION ALL SELECT length({f}) FROM a) SELECT * FROM a',
  'SELECT 1 FROM (SELECT {f})',
  'SELECT 1 FROM numbers(length({f}))',
  'SELECT 1 FROM generateSeries(1, length({f}))',
  'SELECT 1 FROM analyst_spans PREWHERE {f} = 1',
  'SELECT 1 FROM numbers(1) ARRAY JOIN [{f}] AS a',
  'SELECT 1 FROM numbers(1) AS a JOIN numbers(1) AS b ON a.number = b.number AND {f} = 1',
  'SELECT 1 FROM numbers(1) AS a ASOF JOIN numbers(1) AS b ON a.number = b.number AND a.number >= length({f})',
  'SELECT 1 FROM numbers(1), (SELECT {f}) AS b',
  'SELECT 1 GROUP BY {f}',
  'SELECT 1 GROUP BY GROUPING SETS (({f}))',
  'SELECT 1 GROUP BY CUBE({f})',
  'SELECT count() HAVING {f} = 1',
  'SELECT 1 QUALIFY {f} = 1',
  'SELECT 1 ORDER BY {f}',
  'SELECT number AS n FROM numbers(3) ORDER BY n WITH FILL FROM length({f})',
  'SELECT number AS n FROM numbers(3) ORDER BY n WITH FILL TO length({f})',
  'SELECT number AS n FROM numbers(3) ORDER BY n WITH FILL STEP length({f})',
  'SELECT number AS n FROM numbers(3) ORDER BY n WITH FILL STALENESS length({f})',
  'SELECT number AS n, 1 AS o FROM numbers(3) ORDER BY n WITH FILL INTERPOLATE (o AS length({f}))',
  'SELECT 1 LIMIT length({f})',
  'SELECT 1 LIMIT 1 OFFSET length({f})',
  'SELECT 1 ORDER BY 1 OFFSET length({f}) ROWS FETCH FIRST 1 ROWS ONLY',
  'SELECT number FROM numbers(3) LIMIT 1 BY {f}',
  'SELECT number FROM numbers(3) LIMIT length({f}) BY number',
  'SELECT 1 UNION ALL SELECT {f}',
  'SELECT 1 INTERSECT SELECT {f}',
  'SELECT 1 EXCEPT SELECT {f}',
  '(SELECT 1) UNION DISTINCT (SELECT {f})',
  'DESCRIBE (SELECT {f})',
  'DESCRIBE numbers(length({f}))',
  'EXPLAIN SYNTAX SELECT {f}',
  'EXPLAIN QUERY TREE SELECT {f}',
  'EXPLAIN AST SELECT {f}',
];
